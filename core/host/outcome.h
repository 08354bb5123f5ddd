// Outcome: which state an attempt ends in, from how its ranks ended. Pure; the table of states.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/store/rows.h"

namespace assay::host {

/// Why the supervisor ended an attempt itself.
enum class Stop {
  none,          ///< it did not: the ranks ended
  timeout,       ///< run.timeout is over
  step_timeout,  ///< no step for run.step_timeout
  heartbeat,     ///< a rank has been silent for too long
  user,          ///< Ctrl-C, SIGTERM
  infra,         ///< the supervisor could not go on (a full disk, a launch that was refused)
};

/// How one rank ended.
struct RankEnd {
  int wait_status = 0;
  bool launched = false;
  bool killed_by_us = false;  ///< a signal of ours came first: its status says nothing
  bool spool_closed = false;
  std::string error{};      ///< of the worker's error event
  std::string component{};  ///< "optim/lion", where known
  std::string stderr_tail{};
  std::string phase{};
  std::optional<int64_t> step{};
};

struct AttemptFacts {
  Stop stop = Stop::none;
  std::string stop_text{};  ///< "no step for 10m", "the disk is full"
  bool oom_kill = false;    ///< the control group's oom_kill counter rose
  std::vector<RankEnd> ranks{};
};

/// The end as stored (without the log), and the rank that decided it.
struct Outcome {
  store::AttemptEnd end{};
  int rank = 0;
};

/// States by the table of the life cycle. Of several ranks the first by this order decides: oom,
/// fail, invalid, infra, killed - a rank that lost its peer is never the cause.
Outcome decide(const AttemptFacts& facts);

}  // namespace assay::host
