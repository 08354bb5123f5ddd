// The engine subclass that offers this thread's innermost hook to every saved tensor.
#include "core/intercept/saved_hooks.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <utility>
#include <vector>

namespace assay::intercept {
namespace {

struct Entry {
  std::shared_ptr<const Pack> pack;
  Packing packing;
};
thread_local std::vector<Entry> stack;

class Hooks : public torch::autograd::SavedVariableHooks {
 public:
  explicit Hooks(std::shared_ptr<const Pack> pack) : pack_(std::move(pack)) {}
  void call_pack_hook(const Tensor& value) override { unpack_ = (*pack_)(value); }
  Tensor call_unpack_hook() override { return unpack_(); }

 private:
  std::shared_ptr<const Pack> pack_;
  std::function<Tensor()> unpack_;
};

class HookEngine : public torch::autograd::Engine {
 public:
  ~HookEngine() override { stop(); }
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (stack.empty()) return nullptr;
    return std::make_unique<Hooks>(stack.back().pack);
  }
  static Engine& instance() {
    static HookEngine* engine = new HookEngine;  // never destroyed: threads may outlive main
    return *engine;
  }
};

void install_engine_once() {
  static const bool installed = [] {
    torch::autograd::set_default_engine_stub(&HookEngine::instance);
    return true;
  }();
  (void)installed;
}

}  // namespace

SavedHooksScope::SavedHooksScope(Pack pack, Packing packing) {
  install_engine_once();
  stack.push_back({std::make_shared<const Pack>(std::move(pack)), packing});
}

SavedHooksScope::~SavedHooksScope() { stack.pop_back(); }

std::shared_ptr<const Pack> innermost_pack() { return stack.empty() ? nullptr : stack.back().pack; }

bool innermost_replays() { return !stack.empty() && stack.back().packing == Packing::replays; }

}  // namespace assay::intercept
