// product(); see the header.
#include "core/train/product.h"

#include <ATen/ops/mm.h>

namespace assay::train {
namespace {

bool widens(const Tensor& a) {
  static const bool slow = !__builtin_cpu_supports("avx512bw");
  return slow && a.is_cpu() && a.scalar_type() == at::kBFloat16;
}

}  // namespace

Tensor product(const Tensor& a, const Tensor& b) {
  if (!widens(a)) return a.mm(b);
  return a.to(at::kFloat).mm(b.to(at::kFloat)).to(at::kBFloat16);
}

void product_to(Tensor out, const Tensor& a, const Tensor& b) {
  if (!widens(a)) {
    at::mm_out(out, a, b);
  } else {
    out.copy_(a.to(at::kFloat).mm(b.to(at::kFloat)));
  }
}

Tensor add_product(const Tensor& sum, const Tensor& a, const Tensor& b) {
  return widens(a) ? sum.add_(product(a, b)) : sum.addmm_(a, b);
}

}  // namespace assay::train
