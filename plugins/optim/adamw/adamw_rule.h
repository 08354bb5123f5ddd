// The update of one tensor by AdamW, as plain LibTorch operations; also the `rest` of muon.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>

namespace assay::optim {

struct AdamWRule {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;

  /// The equations of adamw.h for step t = `step`, in place.
  void update(at::Tensor& w, const at::Tensor& g, at::Tensor& m, at::Tensor& v, double lr,
              int64_t step) const {
    const auto t = static_cast<double>(step);
    w.mul_(1 - lr * weight_decay);
    m.mul_(beta1).add_(g, 1 - beta1);
    v.mul_(beta2).addcmul_(g, g, 1 - beta2);
    const at::Tensor root = v.div(1 - std::pow(beta2, t)).sqrt_().add_(eps);
    w.addcdiv_(m, root, -lr / (1 - std::pow(beta1, t)));
  }
};

}  // namespace assay::optim
