// compile/fused: hand-written CPU kernels for the operations of the models.
#pragma once

#include <string>
#include <vector>

#include "assay/compile.h"
#include "assay/options.h"

namespace assay::fused {

struct FusedOptions {
  std::vector<std::string> components = {"model", "loss"};
  std::string products = "auto";

  static void declare(OptionTable<FusedOptions>& t) {
    using enum Affects;
    t.add(&FusedOptions::components, "components", numerics,
          "model: norm, rope, attention, swiglu; loss: cross entropy from hidden states");
    t.add(&FusedOptions::products, "products", numerics, {"auto", "own", "library"},
          "linear layers on AVX2: auto takes own kernels in bf16, own in fp32 too, library none");
  }
};

/// The mathematics of eager with fewer passes over memory (recipes 6): per token a SwiGLU reads
/// and writes 3 f instead of 5 f elements, a norm 2 d plus its rstd, and cross entropy keeps no
/// logits. bf16 rounds once per operation, as eager does. Gradients have the same bits for any
/// number of threads. Chosen per instruction set at run time: AVX-512, AVX2 or plain.
class Fused final : public CompileBackend {
 public:
  using Options = FusedOptions;
  /// Throws Error for a component that it does not know.
  explicit Fused(const Options& options);

  std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) override;
  std::vector<std::string> engagement() const override { return {"fused.calls"}; }

 private:
  bool has(const std::string& component) const;

  const Options options_;
};

}  // namespace assay::fused
