// moe: the decoder of llama3 with a mixture of experts where that has its MLP.
#pragma once

#include "../decoder/decoder.h"
#include "balance.h"
#include "flavours.h"

namespace assay::models {

/// Switch 2101.03961, Mixtral 2401.04088, DeepSeekMoE 2401.06066, DeepSeek-V3 2412.19437. A Decoder
/// whose mixture layers have
///
///   z = x Wr^T, score = softmax(z) or sigmoid(z)          max(fp32, compute dtype)
///   chosen = the top_k of score + bias                    bias: balance.h
///   gate = score at the chosen; / sum (route_norm); * route_scale
///   mlp(x) = sum over chosen of gate Expert(x) + Shared(x)
///
/// and whose other layers have the MLP of llama3. Dropless: every chosen pair is computed. Experts
/// and the shared MLP are SwiGLU; the shared experts are one MLP. Call order: router, experts' w1
/// w3, w2, shared w1 w3, w2. The router starts at std 0.02, experts as the MLP does.
class Moe final : public Decoder {
 public:
  using Options = MoeOptions;
  explicit Moe(const Options& options);

  /// Throws Error (R-TOPK, R-GROUPS).
  void prepare(const ModelRun& run) override;
  void before_update(const StepHook& hook) override { balance_.update(hook); }
  std::map<std::string, Tensor> buffers() const override { return balance_.buffers(); }
  std::map<std::string, int64_t> facts() const override;

 protected:
  std::vector<ParameterSpec> mlp_parameters(int64_t layer) const override;
  Tensor mlp(const BlockSpec& block, const BlockInput& input, const Tensor& x, BlockWeights weights,
             Ops& ops) const override;
  double active_share(const ParameterSpec& spec) const override;

 private:
  void check_choice() const;

  const Options options_;
  const Mixture mixture_;
  const RouteSpec route_;
  Balance balance_;
};

}  // namespace assay::models
