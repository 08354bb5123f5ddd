// The bytes of a rank that are known exactly, by category.
#pragma once

#include <cstdint>

#include "assay/api.h"
#include "core/train/assemble.h"

namespace assay::train {

struct MemoryBytes {
  int64_t parameters = 0;  ///< what stands for the parameters between steps
  int64_t gradients = 0;
  int64_t optimizer = 0;  ///< state, and masters that are kept beside weights
  int64_t unsharded = 0;  ///< peak of weights that come and go, with their messages
};

/// Between steps; `unsharded` is the peak so far.
ASSAY_API MemoryBytes memory_bytes(const Assembly& assembly);

}  // namespace assay::train
