// product(); see the header.
#include "core/train/product.h"

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

Tensor add_product(const Tensor& sum, const Tensor& a, const Tensor& b) {
  return widens(a) ? sum.add_(product(a, b)) : sum.addmm_(a, b);
}

}  // namespace assay::train
