// FusedOps: the primitives that compile/fused serves with kernels of its own.
#pragma once

#include <memory>

#include "assay/compile.h"
#include "assay/rope_table.h"

namespace assay::fused {

/// What FusedOps may replace; the rest is the next layer's.
struct FusedParts {
  bool model = true;           ///< norm, rope, attention, swiglu
  bool loss = true;            ///< ce_stats
  bool products = true;        ///< linear in bf16
  bool fp32_products = false;  ///< linear in fp32
};

/// Each primitive keeps what eager keeps for backward, but swiglu keeps gate and up alone. What a
/// kernel does not serve (another device, fp64 attention) goes to the next layer.
class FusedOps final : public OpsLayer {
 public:
  FusedOps(std::unique_ptr<Ops> next, FusedParts parts, int64_t* calls)
      : OpsLayer(std::move(next)), parts_(parts), calls_(calls) {}

  Tensor norm(const Tensor& x, const Weight& scale, double eps) override;
  Tensors linear(const Tensor& x, std::span<const Weight> weights) override;
  Tensor rope(const Tensor& x, const Positions& positions, const RopeSpec& spec) override;
  AttentionPart attention_part(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttentionSpec& spec) override;
  AttentionGradients attention_part_backward(const Tensor& dout, const Tensor& q, const Tensor& k,
                                             const Tensor& v, const AttentionPart& whole,
                                             const AttentionSpec& spec) override;
  Tensor pointwise(Pointwise kind, std::span<const Tensor> inputs) override;
  CrossEntropyStats ce_stats(const Tensor& hidden, const Weight& head,
                             const Tensor& labels) override;

 private:
  /// Counts the call as served, or says that it is not.
  bool serves(bool part, const Tensor& x);
  bool serves_attention(const Tensor& q, const AttentionSpec& spec);

  const FusedParts parts_;
  int64_t* calls_;
  RopeTable rope_;
};

}  // namespace assay::fused
