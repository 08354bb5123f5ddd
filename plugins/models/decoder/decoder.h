// Decoder: what the Llama family shares; a model adds the MLP of its layers.
#pragma once

#include <string>

#include "assay/model.h"
#include "options.h"

namespace assay::models {

/// A weight (out, in) drawn from a truncated normal, cut at an absolute value of 2.
ParameterSpec matrix(std::string name, Shape shape, std::vector<AxisSpec> axes, double std);

constexpr double kStd = 0.02;           ///< of wq wk wv w1
double deep_std(int64_t layer);         ///< of wo w2 w3: 0.02 / sqrt(2 (layer + 1))
std::string layer_name(int64_t layer);  ///< "model.layers.3."

/// gate_proj (w1), up_proj (w3) and down_proj (w2) of a dense SwiGLU of width `ffn`, named `prefix`
/// and their names.
std::vector<ParameterSpec> swiglu_parameters(const std::string& prefix, int64_t hidden, int64_t ffn,
                                             int64_t layer);

/// RMSNorm, grouped-query attention with rotary positions and some MLP, n1 = norm(x), n2 = norm(h):
///
///   h = x + Wo attention(rope(Wq n1), rope(Wk n1), Wv n1)
///   y = h + mlp(n2)
///
/// then logits = Whead norm(y). Initial weights: wq wk wv w1 std 0.02, wo w2 w3 std
/// 0.02 / sqrt(2 (layer + 1)), norms 1, head std hidden^-1/2 cut at 3 std, embedding normal(0, 1),
/// or as the head where it is the head.
class Decoder : public Model {
 public:
  /// `id` names the component in refusals: "model/llama3".
  Decoder(std::string id, const DecoderOptions& options, const Dimensions& size);

  void bind(const ModelContext& context) override;
  std::vector<ParameterSpec> parameters() const override;
  std::vector<BlockSpec> blocks() const override;
  Tensor forward(const BlockSpec& block, const BlockInput& input, BlockWeights weights,
                 Ops& ops) const override;
  Flops flops_per_token(int64_t seq_len) const override;
  int64_t vocabulary() const override { return vocab_; }
  int64_t sequence_length() const override { return options_.seq_len; }
  std::map<std::string, int64_t> facts() const override;

 protected:
  /// Weights of the MLP of a layer, in the order of use.
  virtual std::vector<ParameterSpec> mlp_parameters(int64_t layer) const = 0;
  /// x (B, S, D) is normed.
  virtual Tensor mlp(const BlockSpec& block, const BlockInput& input, const Tensor& x,
                     BlockWeights weights, Ops& ops) const = 0;
  /// Share of a weight that one token is multiplied with.
  virtual double active_share(const ParameterSpec&) const { return 1.0; }

  const Dimensions& size() const { return size_; }
  void check(bool holds, const std::string& message, const std::string& hint) const;

 private:
  std::vector<ParameterSpec> layer_parameters(int64_t layer) const;
  Tensor layer(const BlockSpec& block, const BlockInput& input, BlockWeights weights,
               Ops& ops) const;

  const std::string id_;
  const DecoderOptions options_;
  const Dimensions size_;
  RopeSpec rope_;
  AttentionSpec attention_;
  int64_t vocab_ = 0;  ///< bind() sets it
};

}  // namespace assay::models
