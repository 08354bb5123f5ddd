// Choice of the reduction by what the processor can do.
#include "reduce.h"

namespace assay::comm {

Reduction find_reduction(at::ScalarType dtype, ReduceOp op) {
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  if (Reduction fast = avx2 ? find_avx2_reduction(dtype, op) : nullptr) return fast;
  if (Reduction plain = find_scalar_reduction(dtype, op)) return plain;
  throw Error("comm/shm cannot reduce " + dtype_name(dtype),
              "reduce in another dtype, or exchange with all_gather");
}

}  // namespace assay::comm
