// Flow: what must have run before an action may, and when each action ended; and the walk that
// runs all ranks' lists against it.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "assay/schedule.h"

namespace assay {

/// Times of what has run. Actions name stages 0 .. stages-1 and microbatches 0 .. microbatches-1.
///
///   F(s,i)      needs F(s-1,i)                  in lowered lists RECV_F(s,i) instead, where
///   B, I(s,i)   need F(s,i) and B or I(s+1,i)   the neighbour is on another rank (RECV_B)
///   W(s,i)      needs I(s,i)
///   SEND_F(s,i) needs F(s,i), SEND_B B or I; RECV_F(s,i) needs SEND_F(s-1,i), RECV_B SEND_B(s+1,i)
class Flow {
 public:
  Flow(std::vector<int64_t> rank_of_stage, int64_t microbatches, bool lowered);

  bool ready(std::span<const Action> unit) const;
  /// Time from which all needs are there; those that crossed ranks count `latency` more.
  double available(std::span<const Action> unit, double latency) const;
  void finish(const Action& action, double time);
  bool finished(const Action& action) const;

  /// What this action still waits for.
  std::vector<Action> missing(const Action& action) const;

  int64_t stages() const { return static_cast<int64_t>(rank_of_stage_.size()); }
  int64_t microbatches() const { return microbatches_; }
  int64_t rank_of(int64_t stage) const { return rank_of_stage_[static_cast<size_t>(stage)]; }
  /// True when what `stage` makes for `neighbour` crosses ranks.
  bool crosses(int64_t stage, int64_t neighbour) const;

 private:
  /// At most two; B stands for "B or I".
  std::vector<Action> needs(const Action& action) const;
  size_t place(const Action& action) const;

  std::vector<int64_t> rank_of_stage_;
  int64_t microbatches_;
  bool lowered_;
  std::vector<double> ended_;  // by place(); negative: has not run
};

/// The transfer that hands an action's result to another rank.
struct Transfer {
  Action send, receive;
  int64_t to_rank;
};
/// Of an F to stage + 1 or of a B or I to stage - 1; nothing when no other rank waits for it.
std::vector<Transfer> transfers(const Flow& flow, const Action& action);

/// Takes ranks in turns; `run` gets the next unit of a rank and says whether it could run.
/// Returns each rank's position when nothing could run any more: the sizes of all lists, or a
/// dead-lock.
std::vector<size_t> walk(const std::vector<ActionList>& lists,
                         const std::function<bool(size_t rank, std::span<const Action>)>& run);

bool at_end(const std::vector<ActionList>& lists, const std::vector<size_t>& heads);

/// One line per rank: "rank 1 waits at 1F0 (action 1) for 0F0, action 2 of rank 0".
std::vector<std::string> describe_heads(const std::vector<ActionList>& lists, const Flow& flow,
                                        const std::vector<size_t>& heads);

/// Throws Error with those lines.
[[noreturn]] void throw_dead_lock(const std::vector<ActionList>& lists, const Flow& flow,
                                  const std::vector<size_t>& heads);

}  // namespace assay
