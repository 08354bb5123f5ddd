// initialise: the initial value of any box of a parameter, the same numbers in every layout.
#pragma once

#include "assay/api.h"
#include "assay/parameter.h"

namespace assay::train {

/// The box of `spec` as a contiguous tensor of `dtype`; on meta only its shape.
ASSAY_API Tensor initial_value(const ParameterSpec& spec, const Box& box, uint64_t seed,
                               at::ScalarType dtype, at::Device device);

}  // namespace assay::train
