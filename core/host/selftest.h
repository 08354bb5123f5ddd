// The pairs of the self-test: a cell against itself and against more work, a comparison a call.
#pragma once

#include <cstdint>
#include <string>

#include "core/store/store.h"

namespace assay::host {

/// Plans one more comparison (pairs and controls of evidence::selftest_design()) of the study's
/// first cell, unless pairs of this machine are still waiting: then those come first. It is with
/// itself, or with the cell of more work that has fewest; half of all are with itself. How many
/// pairs were planned. Throws Error for cells that evidence::extra_work() does not take.
int64_t schedule_selftest(store::Store& store, int64_t study_id, const std::string& machine_id);

}  // namespace assay::host
