// Buckets: which gradients travel together, and the flat memory that holds them.
#pragma once

#include <cstdint>
#include <vector>

#include "assay/rank_context.h"

namespace assay::parallel {

/// Reverse registration order, because backward makes gradients final in about that order; a bucket
/// is closed when it holds at least `bucket_bytes` (so one may be larger by a parameter).
std::vector<std::vector<size_t>> plan_buckets(const std::vector<int64_t>& bytes,
                                              int64_t bucket_bytes);

/// One bucket: every member's gradient is a view of `flat`, so gradients need no copy.
struct Bucket {
  std::vector<size_t> members;  ///< indices into the parameters
  Tensor flat;                  ///< (sum of local sizes), main-gradient dtype
};

/// Moves the gradients of the parameters on this rank into buckets. Call before the first gradient
/// of a run.
std::vector<Bucket> make_buckets(std::vector<Parameter>& parameters, int64_t bucket_bytes);

}  // namespace assay::parallel
