// Llama 3: a decoder of RMSNorm, grouped-query attention with rotary positions, and SwiGLU.
#pragma once

#include "../decoder/decoder.h"
#include "flavours.h"

namespace assay::models {

/// Llama 3, arXiv:2407.21783 (RMSNorm 1910.07467, RoPE 2104.09864, GQA 2305.13245, SwiGLU
/// 2002.05202): a Decoder with
///
///   mlp(x) = W2 (silu(W1 x) * (W3 x))
///
/// The call order wq wk wv, wo, w1 w3, w2 is part of the recipe: selective recompute counts linear
/// weights in it. The loss of an untied model starts at ln V + 1/2.
class Llama3 final : public Decoder {
 public:
  using Options = Llama3Options;
  explicit Llama3(const Options& options) : Decoder("model/llama3", options, dimensions(options)) {}

 protected:
  std::vector<ParameterSpec> mlp_parameters(int64_t layer) const override;
  Tensor mlp(const BlockSpec& block, const BlockInput& input, const Tensor& x, BlockWeights weights,
             Ops& ops) const override;
};

}  // namespace assay::models
