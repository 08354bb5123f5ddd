// Rows of a report: runs grouped to recipes, with one figure per column.
#pragma once

#include <string>
#include <vector>

#include "core/report/load.h"
#include "core/report/model.h"

namespace assay::report {

/// "OOM", "FAIL", ... for states that ended badly; the state itself for the others.
std::string state_label(const std::string& state);

/// Several runs in one word: "ok", "OOM", "1/2 ok, FAIL", "queued".
std::string state_of(const std::vector<const RunRow*>& runs);

/// The figure of a column over the runs that ended well.
Figure combine(const std::vector<const RunRow*>& runs, const Column& column);

/// One row per recipe and machine, in grid order; model.reasons gets one line per failed row.
/// Recipes without runs read "queued".
void fill_rows(Model& model, const std::vector<CellRow>& cells);

/// Keys that differ between recipes (or all of them), swept ones first.
std::vector<std::string> shown_keys(const std::vector<CellRow>& cells, bool all_keys);

}  // namespace assay::report
