// Sums of matrix products with fp32 accumulation, on tensors: packs, cuts the work, rounds once.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace assay::fused {

/// One term A B; 2-D, fp32 or bf16 (both the same), one of the strides of each is 1.
struct Factors {
  at::Tensor a;  ///< (m, k)
  at::Tensor b;  ///< (k, n)
};

/// Whether sum_of_products() has kernels for this dtype on this CPU: AVX2 without AVX-512, where
/// LibTorch's bf16 product is slow (docs/decisions/0001).
bool own_products(at::ScalarType dtype);

/// c (m, n), contiguous, fp32 or the dtype of the factors = sum of the terms in order; `accumulate`
/// adds to an fp32 c. Equal bits for any thread count. Needs own_products().
void sum_of_products(std::span<const Factors> terms, const at::Tensor& c, bool accumulate = false);

/// c = or += a b; bf16 factors by own kernels, where own_products(), others by at::mm.
void multiply_into(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
                   bool accumulate = false);

}  // namespace assay::fused
