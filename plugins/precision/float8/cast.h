// Casts to 8-bit floats: formats, scales, and the one place where a tensor is quantised.
#pragma once

#include "assay/tensor.h"

namespace assay::precision {

/// An 8-bit float, arXiv:2209.05433. e4m3: no infinity; e5m2: more range, less precision.
struct Float8Format {
  at::ScalarType dtype;
  double max;
};
inline constexpr Float8Format kE4m3{at::kFloat8_e4m3fn, 448.0};
inline constexpr Float8Format kE5m2{at::kFloat8_e5m2, 57344.0};

/// What shares one scale of a matrix (rows, columns): all of it, each row, each column.
enum class ScaleScope { tensor, row, column };

/// A matrix as codes: value = code / scale. scale is fp32 and broadcasts: (1, 1), (rows, 1) or
/// (1, columns).
struct Scaled {
  Tensor codes{};
  Tensor scale{};

  Scaled t() const { return {codes.t(), scale.t()}; }
};

/// scale = max / max(amax, 1e-12), computed in fp64 and rounded to fp32; `power_of_two` rounds it
/// down to one, so that scaling is exact.
Tensor scale_for(const Tensor& amax, const Float8Format& format, bool power_of_two);

/// codes = round to nearest even of clamp(x * scale, -max, max). The clamp is explicit: LibTorch's
/// casts do not saturate.
Scaled quantise(const Tensor& x, const Float8Format& format, ScaleScope scope, bool power_of_two);

/// The values of the codes, fp32.
Tensor dequantise(const Scaled& x);

/// a b = (codes of a times codes of b, summed in fp32) / (scale of a * scale of b), fp32. Emulated:
/// an fp32 product of the decoded codes. Scales must be constant along the summed dimension.
Tensor product(const Scaled& a, const Scaled& b);

}  // namespace assay::precision
