// Linear layers as operators on assay's own products.
#include <ATen/ops/empty.h>

#include <vector>

#include "operator_groups.h"
#include "operators.h"
#include "product.h"

namespace assay::fused {
namespace {

Shape with_last(const Tensor& x, int64_t last) {
  Shape shape = x.sizes().vec();
  shape.back() = last;
  return shape;
}

Tensors linear_meta(const Tensor& x, at::TensorList weights) {
  Tensors outputs;
  for (const Tensor& w : weights) {
    outputs.push_back(at::empty(with_last(x, w.size(0)), x.options()));
  }
  return outputs;
}

Tensors linear(const Tensor& x, at::TensorList weights) {
  const Tensor input = rows_of(x.contiguous());
  Tensors outputs = linear_meta(x, weights);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Factors term{input, weights[i].contiguous().t()};
    sum_of_products({&term, 1}, rows_of(outputs[i]));
  }
  return outputs;
}

Tensor linear_dx_meta(at::TensorList dys, at::TensorList weights) {
  return at::empty(with_last(dys[0], weights[0].size(1)), dys[0].options());
}

Tensor linear_dx(at::TensorList dys, at::TensorList weights) {
  const Tensor dx = linear_dx_meta(dys, weights);
  std::vector<Factors> terms;
  for (size_t i = 0; i < dys.size(); ++i) {
    terms.push_back({rows_of(dys[i].contiguous()), weights[i].contiguous()});
  }
  sum_of_products(terms, rows_of(dx));
  return dx;
}

Tensor linear_dw_meta(const Tensor& dy, const Tensor& x) {
  return at::empty({dy.size(-1), x.size(-1)}, x.options().dtype(at::kFloat));
}

Tensor linear_dw(const Tensor& dy, const Tensor& x) {
  const Tensor dw = linear_dw_meta(dy, x);
  const Factors term{rows_of(dy.contiguous()).t(), rows_of(x.contiguous())};
  sum_of_products({&term, 1}, dw);
  return dw;
}

}  // namespace

void add_linear_operators(OperatorLibrary& library) {
  library.add<&linear, &linear_meta>("linear(Tensor x, Tensor[] weights) -> Tensor[]");
  library.add<&linear_dx, &linear_dx_meta>("linear_dx(Tensor[] dys, Tensor[] weights) -> Tensor");
  library.add<&linear_dw, &linear_dw_meta>("linear_dw(Tensor dy, Tensor x) -> Tensor");
}

Tensors call_linear(const Tensor& x, at::TensorList weights) {
  static const auto op = find_operator<decltype(linear)>("assay_fused::linear");
  return op.call(x, weights);
}
Tensor call_linear_dx(at::TensorList dys, at::TensorList weights) {
  static const auto op = find_operator<decltype(linear_dx)>("assay_fused::linear_dx");
  return op.call(dys, weights);
}
Tensor call_linear_dw(const Tensor& dy, const Tensor& x) {
  static const auto op = find_operator<decltype(linear_dw)>("assay_fused::linear_dw");
  return op.call(dy, x);
}

}  // namespace assay::fused
