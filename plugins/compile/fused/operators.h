// The operators assay_fused::*: typed calls through the dispatcher, so that recompute, tracing and
// meta see every kernel. Contracts are those of core's operators of the same name unless said.
#pragma once

#include <tuple>

#include "assay/tensor.h"

namespace assay::fused {

/// Defines them with CPU and Meta kernels; once per process, in the plugin's registration.
void register_operators();

/// x (..., in), weights (out_i, in) -> (..., out_i) each; fp32 sums, rounded once.
Tensors call_linear(const Tensor& x, at::TensorList weights);
/// sum of dy_i W_i: (..., in), fp32 sums over all weights, rounded once.
Tensor call_linear_dx(at::TensorList dys, at::TensorList weights);
/// dy^T x (out, in) in fp32.
Tensor call_linear_dw(const Tensor& dy, const Tensor& x);

/// -> y like x; rstd (..., 1). scale in the statistics dtype.
std::tuple<Tensor, Tensor> call_norm(const Tensor& x, const Tensor& scale, double eps);
/// -> dx like x; dscale in the statistics dtype. Sums over rows in a fixed order.
std::tuple<Tensor, Tensor> call_norm_backward(const Tensor& dy, const Tensor& x,
                                              const Tensor& scale, const Tensor& rstd);

/// x (B, S, heads * dh); cos, sin (S or B, S; dh / 2).
Tensor call_rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse);

Tensor call_swiglu(const Tensor& gate, const Tensor& up);
/// -> dgate, dup.
std::tuple<Tensor, Tensor> call_swiglu_backward(const Tensor& dout, const Tensor& gate,
                                                const Tensor& up);

/// q (B, S, H * dh), k and v (B, Sk, Hkv * dh) -> out like q, lse (B, H, S) fp32.
std::tuple<Tensor, Tensor> call_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                          int64_t head_dim, double scale, bool causal);
std::tuple<Tensor, Tensor, Tensor> call_attention_backward(const Tensor& dout, const Tensor& q,
                                                           const Tensor& k, const Tensor& v,
                                                           const Tensor& out, const Tensor& lse,
                                                           int64_t head_dim, double scale,
                                                           bool causal);

/// hidden (T, D), head (V, D), labels (T) -> max, sum_exp, target (T); logits exist for
/// chunk_tokens(V) tokens at a time.
std::tuple<Tensor, Tensor, Tensor> call_ce_stats(const Tensor& hidden, const Tensor& head,
                                                 const Tensor& labels);
/// -> dhidden like hidden; dhead (V, D) in the statistics dtype. Logits are computed again.
std::tuple<Tensor, Tensor> call_ce_backward(const Tensor& hidden, const Tensor& head,
                                            const Tensor& labels, const Tensor& max,
                                            const Tensor& dsum, const Tensor& dtarget);

/// Tokens whose logits exist at once; depends on the vocabulary alone, so that bits do too.
int64_t chunk_tokens(int64_t vocabulary);

}  // namespace assay::fused
