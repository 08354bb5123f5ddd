// Tensor and Shape: the vocabulary types of every LibTorch-side contract.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace assay {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Shape = std::vector<int64_t>;

/// max(fp32, dtype): what statistics of norms, softmax, router and cross entropy are kept in.
inline at::ScalarType statistics_dtype(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

/// (..., n) -> (product of the others, n), without a copy where the layout allows it.
inline Tensor rows_of(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

}  // namespace assay
