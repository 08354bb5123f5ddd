// Validation: whether lists are a whole schedule that runs to its end, and what is wrong if not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/schedule.h"

namespace assay {

/// Something wrong at an action of a rank; index = length of its list: after the last.
struct ScheduleProblem {
  size_t rank = 0;
  size_t index = 0;
  std::string text{};
  std::vector<std::string> details{};  ///< one per rank, for a dead-lock
};

/// What the lists themselves say; meaningful when there are no problems.
struct ScheduleCheck {
  std::vector<ScheduleProblem> problems{};
  std::vector<int64_t> rank_of_stage{};
  int64_t microbatches = 0;
  bool lowered = false;  ///< holds SEND, RECV, UNSHARD, RESHARD or REDUCE_GRAD
};

/// Rule R-CSV: each stage on one rank; each stage has F of every microbatch once, and B, or I and
/// then W, after it; the event simulation comes to its end. Lowered lists also have each SEND
/// matched by one RECV in the same order per pair of ranks, each REDUCE_GRAD after the last
/// weight gradient, and each action between UNSHARD and RESHARD of its stage if there are any.
/// Later rules are checked only when the earlier ones hold. `microbatches` 0: as most stages have.
ScheduleCheck validate(const std::vector<ActionList>& lists, int64_t microbatches = 0);

}  // namespace assay
