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

/// One bucket: the total of every member's sink is a view of `flat`, so gradients need no copy.
struct Bucket {
  std::vector<size_t> members;  ///< indices into the parameters
  Tensor flat;                  ///< (sum of local sizes), main-gradient dtype
};

/// Moves the totals of all sinks into buckets; `flat` lengths are multiples of `multiple`, zero at
/// the end. Call before the first gradient of a run.
std::vector<Bucket> make_buckets(std::vector<Parameter>& parameters, int64_t bucket_bytes,
                                 int64_t multiple = 1);

}  // namespace assay::parallel
