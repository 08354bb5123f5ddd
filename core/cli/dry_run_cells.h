// Dry runs of planned cells: what assay dryrun prints and assay plan --deep judges by.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/cli/context.h"
#include "core/grid/plan.h"

namespace assay::cli {

/// The plan of `file` for a machine of any size, every cell with comm fake: nothing of it runs
/// here.
grid::Plan plan_for_any_machine(const std::filesystem::path& file,
                                const std::vector<std::string>& sets, const Context& context);

/// One worker process takes a step on shapes alone for each cell. In the order of `cells`, what
/// core/train/dry_run.h gives, with "cell"; or {"cell", "error", "hint"} where the recipe refuses.
std::vector<nlohmann::json> dry_run_cells(const std::vector<const grid::Cell*>& cells, int rank);

/// Sum of a dry run's bytes over its categories.
int64_t predicted_bytes(const nlohmann::json& dry_run);

}  // namespace assay::cli
