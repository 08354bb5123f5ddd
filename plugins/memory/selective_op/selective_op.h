// selective_op: inside a layer, costly outputs are kept and the rest is recomputed.
#pragma once

#include "assay/memory.h"
#include "assay/options.h"

namespace assay::memory {

struct SelectiveOpOptions {
  std::vector<std::string> save = {"linear", "attention", "reduce_scatter", "all_to_all"};
  bool every_second = true;

  static void declare(OptionTable<SelectiveOpOptions>& t) {
    using enum Affects;
    using O = SelectiveOpOptions;
    t.add(&O::save, "save", memory,
          "operations whose outputs are kept: linear (of experts too), attention, reduce_scatter, "
          "all_to_all, all_reduce, choose_experts, dispatch, combine");
    t.add(&O::every_second, "every_second", memory, "keep only linear weights 0, 2, 4, ...");
  }
};

/// Selective activation recomputation (Korthikanti et al. 2022, arXiv:2205.05198, per operation as
/// in TorchTitan, arXiv:2410.06511): what is expensive to compute, or was communicated, is kept.
/// Linear weights are counted in call order within a layer, so a Llama layer keeps the outputs of
/// wq, wv, w1 and w2, and attention; it recomputes wk, wo, w3, norms, rope and swiglu. A bf16
/// Llama layer of T tokens then holds 2T(4d + kd + f) + 4TH bytes. Experts' w1, w3 and w2 count
/// once each; their router is no linear weight, and chooses again what it chose.
class SelectiveOp final : public MemoryPolicy {
 public:
  using Options = SelectiveOpOptions;
  /// Throws Error [R-ACLIST] for an operation that no list can hold.
  explicit SelectiveOp(const Options& options);

  Keep block(const BlockSpec& block, int64_t) const override {
    return block.kind == BlockSpec::Kind::layer ? Keep::recompute : Keep::keep;
  }
  bool selective() const override { return true; }
  Keep op(const OpUse& use) const override;
  std::vector<std::string> engagement() const override {
    return {"recompute.blocks", "recompute.kept"};
  }

 private:
  bool saves(std::string_view op) const;

  const Options options_;
};

}  // namespace assay::memory
