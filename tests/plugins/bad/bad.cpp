// An optimizer whose plugin breaks one rule at a time: the one that ASSAY_BAD names.
#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>
#include <xmmintrin.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "assay/operators.h"
#include "assay/optimizer.h"
#include "assay/plugin.h"

namespace {

bool bad(const char* rule) {
  const char* wanted = std::getenv("ASSAY_BAD");
  return wanted && std::string(wanted) == rule;
}

struct Startup {
  Startup() noexcept {  // as the initialisers of TORCH_LIBRARY are
    if (bad("aborts_in_static_initialiser")) std::abort();
    if (bad("library_clash")) {
      static torch::Library first(torch::Library::DEF, "bad_ops", std::nullopt, __FILE__, __LINE__);
      static torch::Library second(torch::Library::DEF, "bad_ops", std::nullopt, __FILE__,
                                   __LINE__);
    }
    if (bad("ftz")) _mm_setcsr(_mm_getcsr() | 0x8040);
  }
} startup;

class Bad final : public assay::Optimizer {
 public:
  void step(std::span<assay::ParameterShard> shards, const assay::StepContext& context) override {
    if (bad("segfault_in_step")) std::raise(SIGSEGV);
    if (bad("endless_step")) {
      for (volatile bool go = true; go;) {
      }
    }
    for (auto& shard : shards) {
      const bool kept = !shard.grad.defined() && !bad("moves_without_gradient");
      if (kept) continue;
      shard.master.sub_(shard.grad.defined() ? shard.grad : shard.master, context.lr);
    }
  }
};

at::Tensor twice(const at::Tensor& x) { return x.mul(2); }

void define_operators() {
  static torch::Library library(torch::Library::FRAGMENT, "bad_ops", std::nullopt, __FILE__,
                                __LINE__);
  library.def("twice(Tensor x) -> Tensor");
  library.impl("twice", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(twice)));
  if (!bad("no_meta_kernel")) {
    library.impl("twice", torch::dispatch(c10::DispatchKey::Meta, TORCH_FN(twice)));
  }
}

assay::Manifest manifest() {
  assay::Manifest m{.name = "bad", .summary = "breaks one rule", .default_lr = 0.01};
  if (bad("other_component")) m.name = "other";
  if (bad("unknown_capability")) m.provides = {"meta.saef"};
  if (bad("no_default_lr")) m.default_lr.reset();
  if (bad("dims_of_another_kind")) m.dims = {"tp"};
  if (bad("rule_without_id")) m.rules = {{"LAB", "mesh.tp > 1", "why"}};
  if (bad("rule_does_not_parse")) m.rules = {{"R-LAB", "mesh.tp >", "why"}};
  if (bad("rule_names_nothing")) m.rules = {{"R-LAB", "mesh_tpp > 1", "why"}};
  return m;
}

}  // namespace

ASSAY_PLUGIN(registrar) {
  if (bad("throws_error")) throw assay::Error("my device is missing", "plug it in");
  if (bad("throws_c10_error")) TORCH_CHECK(false, "my tensor is wrong");
  if (bad("throws_int")) throw 7;
  if (bad("prints")) std::printf("hello from registration\n");
  if (bad("starts_a_thread"))
    std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
  registrar.add<Bad>(manifest());
  if (bad("registers_twice")) registrar.add<Bad>(manifest());
  // A process may hold several copies of this file, but each operator once.
  if (!std::getenv("ASSAY_BAD") || bad("nothing") || bad("no_meta_kernel")) define_operators();
}
