// The three products of a linear layer in 8-bit floats, by recipe.
#pragma once

#include <string>

#include "cast.h"

namespace assay::precision {

/// How one factor of a product is quantised.
struct Factor {
  Float8Format format = kE4m3;
  ScaleScope scope = ScaleScope::tensor;
};

/// y = x W^T, dx = dy W, dW = dy^T x; scopes are of the matrices as stored: x (T, in), W (out, in),
/// dy (T, out).
struct Float8Recipe {
  Factor x_for_y{}, w_for_y{};
  Factor dy_for_dx{}, w_for_dx{};
  Factor dy_for_dw{}, x_for_dw{};
  bool power_of_two = false;
  bool dw_in_float8 = true;  ///< false: dW is a product of the unquantised dy and x
};

/// tensorwise (arXiv:2209.05433), rowwise and rowwise_gw_hp (TorchAO, arXiv:2507.16099), in this
/// order; the index is an operator argument.
enum class Float8RecipeId : int64_t { tensorwise, rowwise, rowwise_gw_hp };
Float8RecipeId parse_recipe(const std::string& name);
const Float8Recipe& recipe_of(Float8RecipeId id);

/// x (..., in), W_i (out_i, in) -> (..., out_i) in the dtype of x. One operator named `linear`, so
/// that selective recompute counts its weights like those of assay::linear.
Tensors float8_linear(const Tensor& x, at::TensorList weights, Float8RecipeId recipe);

/// dy (T, out), W (out, in) -> (T, in), fp32.
Tensor float8_dx(const Tensor& dy, const Tensor& weight, const Float8Recipe& recipe);

/// dy (T, out), x (T, in) -> (out, in), fp32.
Tensor float8_dw(const Tensor& dy, const Tensor& x, const Float8Recipe& recipe);

/// Registers the operator; once per process.
void register_float8_operators();

}  // namespace assay::precision
