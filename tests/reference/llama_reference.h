// A plain Llama in LibTorch calls with ordinary autograd: no seams, no plugins, nothing of core.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace reference {

struct Dimensions {
  int64_t layers, heads, kv_heads;
  double eps = 1e-5, theta = 500000.0;
};

using Weights = std::map<std::string, at::Tensor>;  // Hugging Face Llama names

/// Mean cross entropy in nats of labels (B, S) after ids (B, S), both int64; differentiable.
at::Tensor loss(const Weights& weights, const at::Tensor& ids, const at::Tensor& labels,
                const Dimensions& size);

}  // namespace reference
