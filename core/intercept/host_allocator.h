// HostAllocator: LibTorch's CPU allocator, counted, bounded, and caching freed blocks (fresh pages
// cost a fault and a clear of every 4 KiB; a training step asks for the same sizes again and
// again).
#pragma once

#include <cstdint>

#include "assay/api.h"

namespace assay::intercept {

struct HostMemory {
  int64_t allocated_bytes = 0;  ///< held by tensors now
  int64_t peak_bytes = 0;       ///< most held since reset_peak_host_memory()
  int64_t reserved_bytes = 0;   ///< held plus cached
  int64_t peak_reserved_bytes = 0;
};

/// Replaces LibTorch's CPU allocator; call before the first tensor. Later calls do nothing.
ASSAY_API void install_host_allocator();

/// An allocation that would take the tensors over `bytes` throws c10::OutOfMemoryError; 0: no
/// limit.
ASSAY_API void limit_host_memory(int64_t bytes);

/// All zero when install_host_allocator() was not called.
ASSAY_API HostMemory host_memory();
ASSAY_API void reset_peak_host_memory();

/// Largest resident set of this process so far (ru_maxrss).
ASSAY_API int64_t peak_rss_bytes();

}  // namespace assay::intercept
