// LibTorch's record functions, for this thread alone.
#include "core/intercept/op_profile.h"

#include <ATen/record_function.h>

#include <chrono>
#include <stdexcept>
#include <vector>

namespace assay::intercept {
namespace {

int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

struct OpProfile::State {
  /// A call that has begun and not ended.
  struct Open {
    int64_t start_ns = 0, inner_ns = 0;
  };
  static thread_local State* current;

  std::map<std::string, OpTotal> totals{};
  std::vector<Open> open{};  ///< innermost last
  at::CallbackHandle handle{};

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) {
    if (current) current->open.push_back({.start_ns = now_ns()});
    return nullptr;
  }

  static void end(const at::RecordFunction& function, at::ObserverContext*) {
    if (!current || current->open.empty()) return;
    const Open call = current->open.back();
    current->open.pop_back();
    const int64_t whole_ns = now_ns() - call.start_ns;
    if (!current->open.empty()) current->open.back().inner_ns += whole_ns;
    OpTotal& total = current->totals[function.name()];
    ++total.calls;
    total.self_ns += whole_ns - call.inner_ns;
  }
};

thread_local OpProfile::State* OpProfile::State::current = nullptr;

OpProfile::OpProfile() : state_(std::make_unique<State>()) {
  if (State::current) throw std::logic_error("this thread's operators are being profiled already");
  State::current = state_.get();
  state_->handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&State::begin, &State::end).scopes({at::RecordScope::FUNCTION}));
}

OpProfile::~OpProfile() {
  at::removeCallback(state_->handle);
  State::current = nullptr;
}

const std::map<std::string, OpTotal>& OpProfile::totals() const { return state_->totals; }

}  // namespace assay::intercept
