// Trials of `tune:` in the database: their runs, the value that won, and the record of both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/grid/tuning.h"
#include "core/store/reader.h"
#include "core/store/store.h"

namespace assay::host {

/// Runs of trials; purpose `tune`.
struct TrialRuns {
  int64_t study_id = 0;
  std::vector<int64_t> runs{};     ///< of each of Trials::cells
  std::vector<int64_t> waiting{};  ///< those in the states to run, each once
};

/// Stores the study of the trials and makes the runs that are missing on this machine.
TrialRuns queue_trials(store::Store& store, const grid::Trials& trials,
                       const std::string& machine_id, const std::vector<std::string>& states);

/// What tuning chose for a recipe.
struct Choice {
  std::string arm{};
  size_t factor = 0;
  double value = 0;
  double score = 0;   ///< mean over seeds
  bool edge = false;  ///< at an end of the list: a value beyond it may be better
};

/// The factor with the least mean score per recipe, ties to the smaller. A trial that failed or has
/// no finite score is the worst and still counts. Throws InfrastructureError while a run has not
/// ended, and Error for a recipe without any score.
std::vector<Choice> choose(const store::Reader& reader, const grid::Tune& tune,
                           const std::vector<grid::TrialCell>& cells,
                           const std::vector<int64_t>& runs);

/// Writes the table `trials` of the study, by the labels that its recipes have in comparisons.
void record_trials(store::Store& store, int64_t study_id, const grid::Plan& plan,
                   const std::vector<grid::TrialCell>& cells, const std::vector<int64_t>& runs,
                   const std::vector<Choice>& choices);

}  // namespace assay::host
