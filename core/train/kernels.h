// Core's plain kernels: ATen code behind the operators assay::*, and typed calls to them.
#pragma once

#include <tuple>

#include "assay/ops.h"
#include "assay/tensor.h"

namespace assay::train {

/// Registers assay::* once per process; every typed call does so by itself.
ASSAY_API void register_kernels();

// Each call goes through the dispatcher, so that recompute, tracing and meta see it.

/// x (..., in), weights (out_i, in) -> (..., out_i) each.
ASSAY_API Tensors call_linear(const Tensor& x, at::TensorList weights);

/// -> y like x; rstd (..., 1) in the statistics dtype.
ASSAY_API std::tuple<Tensor, Tensor> call_norm(const Tensor& x, const Tensor& scale, double eps);
ASSAY_API Tensor call_norm_dx(const Tensor& dy, const Tensor& x, const Tensor& scale,
                              const Tensor& rstd);
ASSAY_API Tensor call_norm_dscale(const Tensor& dy, const Tensor& x, const Tensor& rstd);

/// ids (B, S), table (V, D) -> (B, S, D); the gradient in the dtype of `like` (V, D).
ASSAY_API Tensor call_embedding(const Tensor& ids, const Tensor& table);
ASSAY_API Tensor call_embedding_dtable(const Tensor& ids, const Tensor& dy, const Tensor& like);

/// x (B, S, heads * dh); cos, sin (S or B * S, dh / 2); inverse: the rotation's transpose.
ASSAY_API Tensor call_rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse);

/// Shapes as in AttentionPart.
ASSAY_API std::tuple<Tensor, Tensor> call_attention(const Tensor& q, const Tensor& k,
                                                    const Tensor& v, int64_t head_dim, double scale,
                                                    bool causal);
ASSAY_API std::tuple<Tensor, Tensor, Tensor> call_attention_backward(
    const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
    const Tensor& lse, int64_t head_dim, double scale, bool causal);

/// hidden (T, D), head (V, D), labels (T) -> max, sum_exp, target, each (T).
ASSAY_API std::tuple<Tensor, Tensor, Tensor> call_ce_stats(const Tensor& hidden, const Tensor& head,
                                                           const Tensor& labels);
/// -> d loss / d logits (T, V) in the dtype of hidden.
ASSAY_API Tensor call_ce_dlogits(const Tensor& hidden, const Tensor& head, const Tensor& labels,
                                 const Tensor& max, const Tensor& dsum, const Tensor& dtarget);

}  // namespace assay::train
