// Tuning: the `tune:` section. Before a study runs, each of its recipes tries the same factors
// times its own start value on the same seeds and steps; the best value then enters its cells.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/grid/plan.h"

namespace assay::grid {

class Findings;
struct Study;

/// Reads the section: an unknown key is G04, a wrong value G15, a key that the grid sweeps or
/// derives G08. Nothing without a section, and after an error.
std::optional<Tune> read_tune(const Study& study, Findings& findings);

/// One factor of a recipe on one seed. Recipes that differ in nothing but what a trial sets share
/// its cell.
struct TrialCell {
  std::string arm{};  ///< Cell::arm of the study's cells
  std::string cell_id{};
  size_t factor = 0;  ///< index in Tune::factors
  double value = 0;   ///< of the tuned key
  int64_t seed = 0;
};

struct Trials {
  Plan plan{};  ///< the study "NAME-tune"
  std::vector<TrialCell> cells{};
};

/// The trials of a study that plan() has planned. Throws Error when two of its recipes have one
/// name.
Trials plan_trials(const PlanRequest& request, const Plan& study);

}  // namespace assay::grid
