// Newton-Schulz iteration: moves every singular value of a matrix near 1, by products alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace assay::optim {

/// One step maps each singular value s to a s + b s^3 + c s^5. These coefficients
/// (https://kellerjordan.github.io/posts/muon) take [0.01, 1] into [0.6818, 1.1344] in 5 steps.
struct Quintic {
  double a = 3.4445;
  double b = -4.7750;
  double c = 2.0315;
};

/// Scales `g` (rows, cols) by 1 / max(|g|_F, 1e-7), then `steps` times
///
///   A = X X^T;  X = a X + (b A + c A A) X
///
/// on the short side. bf16: operands and results are rounded to bfloat16, sums are fp32. The
/// result has g's dtype.
at::Tensor newton_schulz(const at::Tensor& g, int64_t steps, at::ScalarType dtype);

}  // namespace assay::optim
