// What this machine can do at best, measured in the run that uses it: memory bandwidth and fp32
// multiply-adds.
#pragma once

namespace assay::bench {

/// Bytes per second of y = x + y over arrays far larger than the caches, all threads; the best of
/// several passes. Counts two reads and one write per element.
double memory_bandwidth();

/// fp32 operations per second of independent multiply-adds in registers, all threads; 0 where the
/// loop is not written for the CPU.
double peak_flops();

}  // namespace assay::bench
