// Chrome trace of one rank: the Trace Event format that chrome://tracing and Perfetto read.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/store/reader.h"

namespace assay::report {

/// Ranks of an attempt that recorded steps, ascending.
std::vector<int64_t> traced_ranks(const store::Reader& reader, int64_t attempt_id);

/// {"traceEvents": [...], "displayTimeUnit": "ms", "otherData": {...}}. Times in microseconds since
/// the rank's first step began. Complete events ("X"): each step and evaluation where it was; the
/// wait for data opens a step and the optimizer closes it, so both are placed. Forward and backward
/// are known by their lengths alone (microbatches alternate): they stand in the step's `args` and
/// as counters ("C"), as does exposed communication. `otherData.not_recorded` says what is missing.
nlohmann::json chrome_trace(const store::Reader& reader, int64_t attempt_id, int64_t rank);

}  // namespace assay::report
