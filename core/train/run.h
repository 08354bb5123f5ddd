// run_cell: trains one rank of one cell and reports every raw sample.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "assay/api.h"
#include "core/train/reporter.h"

namespace assay::train {

/// `cell` as the supervisor wrote it (docs/architecture.md, cell.json); plugins are loaded already.
///
/// Throws InvalidRun for a non-finite loss or a technique that did not engage,
/// c10::OutOfMemoryError at the memory limit, InfrastructureError for a lost peer, Error for what
/// the recipe did wrong.
ASSAY_API void run_cell(const nlohmann::json& cell, int rank, Reporter& reporter);

}  // namespace assay::train
