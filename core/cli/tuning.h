// What `run` does for a study with `tune:`: the trials, then the plan with the values that won.
#pragma once

#include <optional>
#include <vector>

#include "core/cli/context.h"
#include "core/cli/supervise.h"
#include "core/host/tuning.h"

namespace assay::cli {

struct Tuned {
  grid::Plan plan{};  ///< of the study, with the chosen values
  std::vector<grid::TrialCell> cells{};
  std::vector<int64_t> runs{};  ///< of each of them
  std::vector<host::Choice> choices{};
};

/// Runs the trials of `plan` that have not run yet and prints what they chose. Nothing when it was
/// stopped: the exit code says how. Throws Error for --filter: trials are of all recipes.
std::optional<Tuned> tune(store::Store& store, const grid::PlanRequest& request,
                          const grid::Plan& plan, const SuperviseFlags& flags, Context& context);

/// Throws Error for a study with `tune:`, which `who` ("the gate") does not run.
void require_untuned(const grid::Plan& plan, const std::string& who);

}  // namespace assay::cli
