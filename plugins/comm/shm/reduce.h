// Elementwise reductions over the buffers of all ranks, in rank order.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "assay/communicator.h"

namespace assay::comm {

/// to[i] = op(from[0][i], from[1][i], ..., from[ranks - 1][i]), evaluated left to right in fp32
/// (fp64 for fp64, the type itself for integers), rounded once. `to` may be one of `from`. Buffers
/// need no alignment beyond the element's.
using Reduction = void (*)(void* to, const void* const* from, int ranks, int64_t count);

/// The fastest reduction of this machine; throws Error for a dtype that has none.
Reduction find_reduction(at::ScalarType dtype, ReduceOp op);

/// Portable: one loop for every dtype and operation; null if there is none.
Reduction find_scalar_reduction(at::ScalarType dtype, ReduceOp op);

/// AVX2 and F16C: sums of fp32, fp64, bf16 and fp16; null for the others. Same bits as the
/// portable.
Reduction find_avx2_reduction(at::ScalarType dtype, ReduceOp op);

}  // namespace assay::comm
