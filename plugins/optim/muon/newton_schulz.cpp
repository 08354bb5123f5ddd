// The iteration of newton_schulz.h.
#include "newton_schulz.h"

namespace assay::optim {
namespace {

constexpr double kSmallestNorm = 1e-7;

/// Products of matrices that hold values of `dtype`. A CPU without bfloat16 instructions is slow
/// at bf16 products, so there they are fp32 products of bf16 values, rounded: the same numbers.
class Products {
 public:
  Products(at::ScalarType dtype, bool cpu)
      : rounds_(dtype == at::kBFloat16 && cpu), storage_(rounds_ ? at::kFloat : dtype) {}

  at::Tensor enter(const at::Tensor& x) const { return round(x.to(storage_)); }
  at::Tensor mm(const at::Tensor& x, const at::Tensor& y) const { return round(x.mm(y)); }
  /// beta * x + alpha * y z
  at::Tensor addmm(const at::Tensor& x, const at::Tensor& y, const at::Tensor& z, double beta,
                   double alpha) const {
    return round(x.addmm(y, z, beta, alpha));
  }

 private:
  at::Tensor round(const at::Tensor& x) const {
    return rounds_ ? x.to(at::kBFloat16).to(at::kFloat) : x;
  }

  const bool rounds_;
  const at::ScalarType storage_;
};

}  // namespace

at::Tensor newton_schulz(const at::Tensor& g, int64_t steps, at::ScalarType dtype) {
  const Quintic q;
  const Products in(dtype, g.is_cpu());
  const bool tall = g.size(0) > g.size(1);
  at::Tensor x = in.enter(tall ? g.t() : g);
  x = in.enter(x.div(x.norm().clamp_min(kSmallestNorm)));
  for (int64_t i = 0; i < steps; ++i) {
    const at::Tensor a = in.mm(x, x.t());
    const at::Tensor b = in.addmm(a, a, a, q.b, q.c);
    x = in.addmm(x, b, x, q.a, 1.0);
  }
  return (tall ? x.t() : x).to(g.scalar_type());
}

}  // namespace assay::optim
