// The fused AdamW kernel: weights, gradients and both moments of all parameters in one pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace assay::optim {

/// What one parameter brings. Shapes are equal and all tensors are contiguous.
struct FusedAdamWShard {
  at::Tensor master;      ///< fp32 or fp64, updated in place
  at::Tensor grad;        ///< dtype of `master`, or bf16
  at::Tensor exp_avg;     ///< M, dtype of `master`, updated in place
  at::Tensor exp_avg_sq;  ///< Q, likewise
  at::Tensor weight{};    ///< undefined, or bf16: overwritten by the rounded `master`
  double lr = 0;          ///< after schedule and per-parameter scale
  double weight_decay = 0;
};

struct FusedAdamWStep {
  int64_t step = 1;  ///< t, 1 for the first update
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
};

/// Defines the operator assay_adamw::fused_ with its CPU and Meta kernels; once per process, in
/// the plugin's registration (op namespace `assay_adamw`).
void register_fused_adamw();

/// AdamW, Loshchilov and Hutter 2017, arXiv:1711.05101, with bias correction, per element:
///
///   W = W * (1 - lr * wd)
///   M = b1 * M + (1 - b1) * g
///   Q = b2 * Q + (1 - b2) * g * g
///   W = W - lr * (M / (1 - b1^t)) / (sqrt(Q / (1 - b2^t)) + eps)
///
/// Calls the operator once for all shards of one dtype. Elementwise, so that any thread count and
/// any sharding give the same bits. Throws c10::Error on shapes, dtypes or strides it cannot take.
void fused_adamw(std::span<const FusedAdamWShard> shards, const FusedAdamWStep& step);

}  // namespace assay::optim
