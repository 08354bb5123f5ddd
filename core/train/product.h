// product: a matrix product that is not slow on a CPU without bf16 instructions.
#pragma once

#include "assay/api.h"
#include "assay/tensor.h"

namespace assay::train {

/// a b, in the dtype of both: fp32 sums (fp64 for fp64), rounded once. On a CPU below AVX-512
/// bf16 operands are widened first: LibTorch's own bf16 product is 10 to 50 times slower there
/// (docs/decisions/0001-bf16-products.md).
ASSAY_API Tensor product(const Tensor& a, const Tensor& b);

/// The same, written to `out`.
void product_to(Tensor out, const Tensor& a, const Tensor& b);

/// sum += a b, in place; returns sum.
Tensor add_product(const Tensor& sum, const Tensor& a, const Tensor& b);

}  // namespace assay::train
