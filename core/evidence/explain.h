// Explain: where the time of a step goes, part by part, from what each step recorded.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/evidence/run_record.h"
#include "core/store/reader.h"

namespace assay::evidence {

/// Parts of a step; `comm` is exposed communication, taken out of the three that it lies in.
enum class Part { data_wait, forward, backward, optimizer, comm, rest };
inline constexpr std::array<Part, 6> kParts = {Part::data_wait, Part::forward, Part::backward,
                                               Part::optimizer, Part::comm,    Part::rest};
const char* name_of(Part part);  ///< "data wait", "forward", ...

/// For FROM: the rows of `steps`, with their samples forward_s, backward_s and optimizer_s, NULL
/// where they were not recorded.
inline constexpr const char* kStepsWithParts =
    "(SELECT t.*, f.value forward_s, b.value backward_s, o.value optimizer_s FROM steps t"
    " LEFT JOIN samples f ON f.attempt_id=t.attempt_id AND f.name='forward_s' AND f.rank=t.rank"
    " AND f.step=t.step LEFT JOIN samples b ON b.attempt_id=t.attempt_id AND b.name='backward_s'"
    " AND b.rank=t.rank AND b.step=t.step LEFT JOIN samples o ON o.attempt_id=t.attempt_id AND"
    " o.name='optimizer_s' AND o.rank=t.rank AND o.step=t.step)";

/// One step as its slowest rank saw it, s; parts that the rank did not record are absent. The parts
/// that are there, `rest` among them, add up to wall_s.
struct StepSplit {
  int64_t step = 0, rank = 0;
  double wall_s = 0;
  std::map<Part, double> parts{};
};

/// Shares of the exposed communication that lie in forward, backward and optimizer, over all ranks
/// and steps of a run; they add up to 1, or are all 0 where no rank waited.
struct CommShares {
  double forward = 0, backward = 0, optimizer = 0;
};

/// wall = data_wait + forward + backward + optimizer + rest, as the clock of the trainer has it;
/// exposed communication E lies inside and is taken out by its shares.
StepSplit split_step(double wall_s, const std::map<Part, double>& recorded,
                     const CommShares& shares);

/// Traffic of one group and operation, per step.
struct GroupTraffic {
  std::string group{}, op{}, phase{};
  double calls = 0, payload_bytes = 0;
  std::optional<double> exposed_s{};  ///< of the rank that waited longest
};

/// One operator in the profiled step (a warm-up step of the lowest rank), medians over runs.
struct OperatorTime {
  double calls = 0, self_s = 0;  ///< self: without the operators that it called
};

/// Used steps of some runs, pooled.
struct Breakdown {
  std::vector<int64_t> runs{};
  int64_t steps = 0;
  double wall_s = 0;               ///< median
  std::map<Part, double> parts{};  ///< medians; a part that any step lacks is absent
  std::vector<GroupTraffic> traffic{};
  /// The slowest by name, "other", and "outside operators"; empty where no step was profiled.
  std::map<std::string, OperatorTime> operators{};

  /// Sum of the parts' medians: equals wall_s but for what medians lose.
  double parts_s() const;
};

/// Steps of kind `steady` that the run's figures use. Empty for a run without timing.
std::vector<StepSplit> used_splits(const store::Reader& reader, const RunRecord& run);

/// Throws Error when none of the runs has a used step.
Breakdown break_down(const store::Reader& reader, std::span<const RunRecord> runs);

}  // namespace assay::evidence
