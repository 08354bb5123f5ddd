// Event simulation of a schedule: when each action runs, how long the step takes, what is alive.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "assay/pipeline.h"

namespace assay {

/// Times of one chunk and microbatch, in any one unit. A whole backward takes I + W.
struct ChunkTimes {
  double forward = 1, input = 1, weight = 1;  ///< F, I, W
  double overlapped = 0;                      ///< O, an overlapped pair; 0: F + I + W
  double latency = 0;                         ///< c, from the end of an action to its use elsewhere
  double backward() const { return input + weight; }
  double pair() const { return overlapped > 0 ? overlapped : forward + backward(); }
};

/// A unit of a rank's list: an action, or an overlapped pair.
struct Span {
  size_t index = 0;  ///< of its first action in the list
  size_t size = 1;
  double start = 0, end = 0;
};

struct Timeline {
  std::vector<std::vector<Span>> ranks{};  ///< what takes time, in order; transfers take none
  double makespan = 0;
  double bubble = 0;                   ///< beyond the longest work of one rank
  std::vector<double> busy{};          ///< per rank: time of its actions
  std::vector<int64_t> peak_chunks{};  ///< per rank: live from F to B or W
  std::vector<int64_t> messages{};     ///< per rank: sent to other ranks
  double bubble_share() const { return makespan > 0 ? bubble / makespan : 0; }
};

/// Each rank runs its list in order, an action as soon as the rank is free and what it needs is
/// there. RECV, SEND, UNSHARD, RESHARD and REDUCE_GRAD take no time, so a lowered schedule takes as
/// long as the compute-only one. Throws Error naming every rank's next action on a dead-lock.
/// The lists must be valid otherwise (validate.h).
Timeline simulate(const std::vector<ActionList>& lists, const std::vector<int64_t>& rank_of_stage,
                  int64_t microbatches, const ChunkTimes& times = {});

/// Time of a unit of `rank`'s list that starts at `index`.
using UnitTime = std::function<double(size_t rank, size_t index, std::span<const Action> unit)>;
/// The same with a time for every unit, say measured ones.
Timeline simulate(const std::vector<ActionList>& lists, const std::vector<int64_t>& rank_of_stage,
                  int64_t microbatches, const UnitTime& time, double latency);

/// Most chunks alive at once: +1 at F, -1 at B or W.
int64_t peak_chunks(const ActionList& list);

}  // namespace assay
