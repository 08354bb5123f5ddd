// The fallback on DispatchKey::Fake and the per-thread stack of observers behind it.
#include "core/intercept/op_observer.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <utility>
#include <vector>

#include "assay/error.h"

namespace assay::intercept {
namespace {

constexpr auto kKey = c10::DispatchKey::Fake;
thread_local std::vector<OpObserver> observers;

class StackCall : public OpCall {
 public:
  StackCall(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack)
      : op_(op), below_(below), stack_(*stack) {}

  std::string_view name() const override { return op_.schema().name(); }
  void run() override { op_.redispatchBoxed(below_, &stack_); }

  Tensors outputs() const override {
    Tensors result;
    for (size_t i = stack_.size() - op_.schema().returns().size(); i < stack_.size(); ++i) {
      const c10::IValue& value = stack_[i];
      if (value.isTensor()) result.push_back(value.toTensor());
      if (value.isTensorList()) {
        for (const Tensor& t : value.toTensorVector()) result.push_back(t);
      }
    }
    return result;
  }

  void answer(const Tensors& outputs) override {
    torch::jit::drop(stack_, op_.schema().arguments().size());
    const auto& returns = op_.schema().returns();
    if (returns.size() == 1 && returns[0].type()->kind() == c10::TypeKind::ListType) {
      stack_.emplace_back(outputs);
      return;
    }
    for (const Tensor& t : outputs) stack_.emplace_back(t);
  }

  Tensors list_argument(size_t index) const override { return argument(index).toTensorVector(); }
  void set_list_argument(size_t index, const Tensors& list) override {
    stack_[stack_.size() - op_.schema().arguments().size() + index] = list;
  }
  void replace_output_list(const Tensors& list) override { stack_.back() = list; }

 private:
  const c10::IValue& argument(size_t index) const {
    return stack_[stack_.size() - op_.schema().arguments().size() + index];
  }

  const c10::OperatorHandle& op_;
  c10::DispatchKeySet below_;
  torch::jit::Stack& stack_;
};

void intercept(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard off{c10::DispatchKeySet(kKey)};
  const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  if (observers.empty()) return op.redispatchBoxed(below, stack);
  StackCall call(op, below, stack);
  observers.back()(call);
}

void install_fallback_once() {
  static torch::Library* library = [] {
    if (c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(kKey)) {
      throw Error(
          "another library owns LibTorch's Fake dispatch key; assay needs it to observe operators");
    }
    auto* made = new torch::Library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
    made->fallback(torch::CppFunction::makeFromBoxedFunction<&intercept>());
    return made;
  }();
  (void)library;
}

}  // namespace

struct OpObserverScope::Guard {
  c10::impl::IncludeDispatchKeyGuard on{c10::DispatchKeySet(kKey)};
};

OpObserverScope::OpObserverScope(OpObserver observer) {
  install_fallback_once();
  observers.push_back(std::move(observer));
  guard_ = std::make_unique<Guard>();
}

OpObserverScope::~OpObserverScope() {
  guard_.reset();
  observers.pop_back();
}

}  // namespace assay::intercept
