// Llama 3: a decoder of RMSNorm, grouped-query attention with rotary positions, and SwiGLU.
#pragma once

#include "assay/model.h"
#include "flavours.h"

namespace assay::models {

/// Llama 3, arXiv:2407.21783 (RMSNorm 1910.07467, RoPE 2104.09864, GQA 2305.13245, SwiGLU
/// 2002.05202). One layer, n1 = norm(x), n2 = norm(h):
///
///   h = x + Wo attention(rope(Wq n1), rope(Wk n1), Wv n1)
///   y = h + W2 (silu(W1 n2) * (W3 n2))
///
/// then logits = Whead norm(y). The call order wq wk wv, wo, w1 w3, w2 is part of the recipe:
/// selective recompute counts linear weights in it.
///
/// Initial weights: wq wk wv w1 std 0.02, wo w2 w3 std 0.02 / sqrt(2 (layer + 1)), norms 1, head
/// std hidden^-1/2 cut at 3 std, embedding normal(0, 1), or as the head where it is the head. So
/// the loss of an untied model starts at ln V + 1/2.
class Llama3 final : public Model {
 public:
  using Options = Llama3Options;
  explicit Llama3(const Options& options);

  void bind(const ModelContext& context) override;
  std::vector<ParameterSpec> parameters() const override;
  std::vector<BlockSpec> blocks() const override;
  Tensor forward(const BlockSpec& block, const BlockInput& input, BlockWeights weights,
                 Ops& ops) const override;
  Flops flops_per_token(int64_t seq_len) const override;
  int64_t vocabulary() const override { return vocab_; }
  int64_t sequence_length() const override { return options_.seq_len; }
  std::map<std::string, int64_t> facts() const override;

 private:
  Tensor layer(const BlockInput& input, BlockWeights weights, Ops& ops) const;

  const Options options_;
  const Dimensions size_;
  RopeSpec rope_;
  AttentionSpec attention_;
  int64_t vocab_ = 0;  ///< bind() sets it
};

}  // namespace assay::models
