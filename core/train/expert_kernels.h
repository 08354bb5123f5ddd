// The kernels of mixtures of experts behind the operators assay::*, and typed calls to them.
#pragma once

#include <optional>
#include <span>
#include <tuple>

#include "assay/ops.h"
#include "assay/tensor.h"

namespace assay::train {

/// Registers assay::choose_experts and the others once per process; every typed call does so.
ASSAY_API void register_expert_kernels();

/// x (T, D), router (E, D) -> (T, E) in the statistics dtype.
Tensor call_router(const Tensor& x, const Tensor& router);

/// scores (T, E), bias (E) or undefined -> experts (T, k) int64, counts (E) int64. Of equal scores
/// the lower id comes first.
std::tuple<Tensor, Tensor> call_choose_experts(const Tensor& scores, const Tensor& bias,
                                               const RouteSpec& spec);

/// experts (T, k) -> place (T, k) of each pair in rows ordered by (expert, token, slot) with every
/// expert's rows padded to a multiple of pad_rows, and counts (E) before padding; int64.
std::tuple<Tensor, Tensor> call_place_rows(const Tensor& experts, int64_t expert_count,
                                           int64_t pad_rows);

/// x (T, D) -> (rows, D): gate * x at the place of each pair, zeros elsewhere. The product is in
/// the statistics dtype; without gates rows are copies.
Tensor call_dispatch(const Tensor& x, const Tensor& place, const std::optional<Tensor>& gates,
                     int64_t rows);

/// The transpose: y (R, D) -> (T, D), the sum over slots, from 0, of gate * row in the statistics
/// dtype, then in the dtype of y.
Tensor call_combine(const Tensor& y, const Tensor& place, const std::optional<Tensor>& gates);

/// dout (T, D), y (R, D) -> (T, k): the gradient of the gates, statistics dtype.
Tensor call_combine_dgates(const Tensor& dout, const Tensor& y, const Tensor& place);

/// x (R, in), weights (E, out_i, in), rows of each expert -> (R, out_i) each.
Tensors call_grouped_linear(const Tensor& x, at::TensorList weights, at::IntArrayRef expert_rows);

/// sum over weights of dy_i W_i: dy_i (R, out_i) or undefined -> (R, in).
Tensor grouped_dx(const Tensors& dys, std::span<const Weight> weights, at::IntArrayRef expert_rows);

/// dy (R, out), x (R, in) -> (E, out, in), zero for experts without rows.
Tensor grouped_dweight(const Tensor& dy, const Tensor& x, at::IntArrayRef expert_rows);

}  // namespace assay::train
