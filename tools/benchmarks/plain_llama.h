// A Llama and its training step written by hand: no seams, no plugins, nothing of core/train.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace assay::bench {

struct PlainOptions {
  int64_t layers = 0, head_dim = 0;
  double eps = 1e-5, theta = 500000.0;
  double lr = 8e-4, max_norm = 1.0;
};

/// fp32, one micro-batch a step, with the LibTorch kernels that compile/eager uses and the fused
/// AdamW of optim/adamw: what a step of the same recipe costs without assay's design.
class PlainLlama {
 public:
  /// Weights by their Hugging Face Llama names; copied.
  PlainLlama(const std::map<std::string, at::Tensor>& weights, const PlainOptions& options);

  /// One optimizer step on ids and labels (B, S), int64; `number` counts from 1. Mean loss, nats.
  double step(const at::Tensor& ids, const at::Tensor& labels, int64_t number);

 private:
  struct Layer {
    at::Tensor input_norm, q, k, v, o, post_norm, gate, up, down;
  };
  at::Tensor loss(const at::Tensor& ids, const at::Tensor& labels) const;
  at::Tensor layer(const at::Tensor& x, const Layer& w, const at::Tensor& cos,
                   const at::Tensor& sin) const;
  void update(int64_t number);

  const PlainOptions options_;
  std::vector<at::Tensor> parameters_, first_moments_, second_moments_;
  std::vector<double> decay_;  ///< by parameter
  at::Tensor embedding_, final_norm_, head_;
  std::vector<Layer> layers_;
};

/// y = RMSNorm(x) * scale and its gradients, as one autograd function.
at::Tensor plain_norm(const at::Tensor& x, const at::Tensor& scale, double eps);

}  // namespace assay::bench
