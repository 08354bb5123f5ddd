// The recipe table and the products.
#include "products.h"

#include "assay/error.h"
#include "assay/operators.h"

namespace assay::precision {
namespace {

constexpr Factor kRow{kE4m3, ScaleScope::row}, kColumn{kE4m3, ScaleScope::column};
constexpr Factor kTensor{kE4m3, ScaleScope::tensor}, kGradient{kE5m2, ScaleScope::tensor};

constexpr Float8Recipe kTensorwise{.x_for_y = kTensor,
                                   .w_for_y = kTensor,
                                   .dy_for_dx = kGradient,
                                   .w_for_dx = kTensor,
                                   .dy_for_dw = kGradient,
                                   .x_for_dw = kTensor};
constexpr Float8Recipe kRowwise{.x_for_y = kRow,
                                .w_for_y = kRow,
                                .dy_for_dx = kRow,
                                .w_for_dx = kColumn,
                                .dy_for_dw = kColumn,
                                .x_for_dw = kColumn,
                                .power_of_two = true};
constexpr Float8Recipe kRowwiseGwHp{.x_for_y = kRow,
                                    .w_for_y = kRow,
                                    .dy_for_dx = kRow,
                                    .w_for_dx = kTensor,
                                    .dw_in_float8 = false};

Scaled quantise(const Tensor& x, const Factor& factor, const Float8Recipe& recipe) {
  return quantise(x, factor.format, factor.scope, recipe.power_of_two);
}

Tensors linear_kernel(const Tensor& x, at::TensorList weights, int64_t recipe_index) {
  const Float8Recipe& recipe = recipe_of(static_cast<Float8RecipeId>(recipe_index));
  const Scaled input = quantise(rows_of(x), recipe.x_for_y, recipe);
  Tensors outputs;
  for (const Tensor& weight : weights) {
    Shape shape = x.sizes().vec();
    shape.back() = weight.size(0);
    const Tensor y = product(input, quantise(weight, recipe.w_for_y, recipe).t());
    outputs.push_back(y.to(x.scalar_type()).view(shape));
  }
  return outputs;
}

}  // namespace

Float8RecipeId parse_recipe(const std::string& name) {
  if (name == "tensorwise") return Float8RecipeId::tensorwise;
  if (name == "rowwise") return Float8RecipeId::rowwise;
  if (name == "rowwise_gw_hp") return Float8RecipeId::rowwise_gw_hp;
  throw Error("precision/float8 has no recipe '" + name + "'");
}

const Float8Recipe& recipe_of(Float8RecipeId id) {
  switch (id) {
    case Float8RecipeId::tensorwise:
      return kTensorwise;
    case Float8RecipeId::rowwise:
      return kRowwise;
    case Float8RecipeId::rowwise_gw_hp:
      return kRowwiseGwHp;
  }
  ASSAY_CHECK(false, "no such float8 recipe");
}

void register_float8_operators() {
  static OperatorLibrary library("assay_float8");
  static const bool once = [] {
    library.add<&linear_kernel>("linear(Tensor x, Tensor[] weights, int recipe) -> Tensor[]");
    return true;
  }();
  (void)once;
}

Tensors float8_linear(const Tensor& x, at::TensorList weights, Float8RecipeId recipe) {
  static const auto op =
      find_operator<Tensors(const Tensor&, at::TensorList, int64_t)>("assay_float8::linear");
  return op.call(x, weights, static_cast<int64_t>(recipe));
}

Tensor float8_dx(const Tensor& dy, const Tensor& weight, const Float8Recipe& recipe) {
  return product(quantise(dy, recipe.dy_for_dx, recipe), quantise(weight, recipe.w_for_dx, recipe));
}

Tensor float8_dw(const Tensor& dy, const Tensor& x, const Float8Recipe& recipe) {
  return product(quantise(dy, recipe.dy_for_dw, recipe).t(), quantise(x, recipe.x_for_dw, recipe));
}

}  // namespace assay::precision
