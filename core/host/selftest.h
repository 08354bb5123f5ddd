// The pairs of the self-test: one cell against itself, a comparison more with every call.
#pragma once

#include <cstdint>
#include <string>

#include "core/store/store.h"

namespace assay::host {

/// Plans one more A/A comparison (pairs and controls of evidence::selftest_design()) of the study's
/// first cell, unless pairs of this machine are still waiting: then those come first. How many
/// pairs were planned.
int64_t schedule_selftest(store::Store& store, int64_t study_id, const std::string& machine_id);

}  // namespace assay::host
