// RunRecord: what a comparison needs of one run: its newest attempt's steps, figures and quality.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/evidence/bits.h"
#include "core/evidence/curves.h"
#include "core/evidence/quality.h"
#include "core/store/reader.h"

namespace assay::evidence {

struct RunRecord {
  int64_t run_id = 0, attempt_id = 0, attempts = 0;
  std::string cell_id{}, machine_id{}, env_id{}, purpose{}, state{};
  bool timed = true;
  std::optional<int64_t> resumed_step{}, steady_first{}, steady_last{};
  std::string steady_method{};
  std::map<std::string, double> figures{};  ///< metrics over all ranks, by name; "fact.*" of rank 0
  Quality quality{};

  bool ok() const { return state == "ok"; }
  /// Enters timing: ended well, timed, from step 0, with steps past its start.
  bool has_timing() const { return ok() && timed && !resumed_step && steady_first.has_value(); }
  std::optional<double> figure(const std::string& name) const;
};

/// The runs with these ids, in any order of theirs; ids without a run are left out.
std::map<int64_t, RunRecord> load_runs(const store::Reader& reader, std::span<const int64_t> ids);

/// Runs of a cell that ended well, of purposes measure, pair and control, by run_id.
std::vector<int64_t> ok_runs(const store::Reader& reader, const std::string& cell_id);

/// Statistic ("p10", "median", "min") of the step times from `first_step` on, kind `steady`,
/// maximum over ranks. Nothing without such steps.
struct StepTimes {
  std::optional<double> statistic{}, median{};
  int64_t steps = 0;
};
StepTimes step_times(const store::Reader& reader, const RunRecord& run, int64_t first_step,
                     const std::string& statistic);

/// Losses and norms of all steps and evaluations with their bits; checksums by rank.
BitSeries load_bits(const store::Reader& reader, const RunRecord& run);
/// Train losses over tokens and seconds.
Curve load_curve(const store::Reader& reader, const RunRecord& run);

}  // namespace assay::evidence
