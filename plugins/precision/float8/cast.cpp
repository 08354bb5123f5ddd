// The casts of cast.h, from operations that also run on meta tensors (abs does not).
#include "cast.h"

#include <ATen/ops/maximum.h>

namespace assay::precision {
namespace {

constexpr double kSmallestAmax = 1e-12;
constexpr int64_t kExponentBits = 0x7F800000;  // of an fp32 number: clears sign and mantissa

Tensor amax_of(const Tensor& x, ScaleScope scope) {
  std::vector<int64_t> dims = {0, 1};
  if (scope == ScaleScope::row) dims = {1};
  if (scope == ScaleScope::column) dims = {0};
  return at::maximum(x.amax(dims, /*keepdim=*/true), x.amin(dims, true).neg());
}

}  // namespace

Tensor scale_for(const Tensor& amax, const Float8Format& format, bool power_of_two) {
  const Tensor safe = amax.to(at::kDouble).clamp_min(kSmallestAmax);
  const Tensor scale = safe.reciprocal().mul(format.max).to(at::kFloat);
  if (!power_of_two) return scale;
  return scale.view(at::kInt).bitwise_and(kExponentBits).view(at::kFloat);
}

Scaled quantise(const Tensor& x, const Float8Format& format, ScaleScope scope, bool power_of_two) {
  const Tensor wide = x.to(at::kFloat);
  const Tensor scale = scale_for(amax_of(wide, scope), format, power_of_two);
  return {wide.mul(scale).clamp_(-format.max, format.max).to(format.dtype), scale};
}

Tensor dequantise(const Scaled& x) { return x.codes.to(at::kFloat).div_(x.scale); }

Tensor product(const Scaled& a, const Scaled& b) {
  const Tensor sum = a.codes.to(at::kFloat).mm(b.codes.to(at::kFloat));
  return sum.div_(a.scale.mul(b.scale));
}

}  // namespace assay::precision
