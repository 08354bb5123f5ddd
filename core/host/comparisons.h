// Comparisons of a study: which recipes stand against which, and their pairs in the queue.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/evidence/assess.h"
#include "core/evidence/tier.h"
#include "core/grid/components.h"
#include "core/host/study.h"

namespace assay::host {

struct ComparisonPlan {
  evidence::Arm base{}, candidate{};
  evidence::Design design{};
};

/// What the installed plugins declare about options and components.
evidence::Traits traits_of(const grid::Components& components);

/// The comparisons that the `compare:` section of a stored study asks for: of every grid point the
/// baseline arm against each candidate. A baseline that is a text names a recipe of the grid; then
/// all others are candidates, or those of `candidates: [names]`. Throws Error for a name that no
/// recipe has.
std::vector<ComparisonPlan> declared_comparisons(const store::Reader& reader, int64_t study_id,
                                                 const nlohmann::json& section,
                                                 const evidence::Traits& traits);

/// One recipe against others by their labels (all others if `candidates` is empty).
std::vector<ComparisonPlan> chosen_comparisons(const store::Reader& reader, int64_t study_id,
                                               const std::string& baseline,
                                               const std::vector<std::string>& candidates,
                                               const evidence::Design& design,
                                               const evidence::Traits& traits);

/// Keys that the study's axes set: what it compares on purpose.
std::vector<std::string> compared_keys(const store::Reader& reader, int64_t study_id);

/// Writes comparisons and makes the runs that are missing of stage 1 (or 2) and of its A/A control,
/// in the order of execution: ABBA pairs of all comparisons in turn, controls spread evenly among
/// them. At tier T1 the baseline's perturbed runs come with them. What was planned before is kept.
/// Returns the comparisons' ids.
std::vector<int64_t> schedule_pairs(store::Store& store, int64_t study_id,
                                    const std::string& machine_id,
                                    const std::vector<ComparisonPlan>& comparisons, int stage = 1);

/// Runs of all pairs and controls of the study, each pair's two in the order of execution.
struct PairRuns {
  StudyRun first{}, second{};
};
std::vector<PairRuns> pair_runs(const store::Reader& reader, int64_t study_id,
                                const std::string& machine_id);

}  // namespace assay::host
