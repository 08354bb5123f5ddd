// Observer: what a supervisor tells while it works; progress lines and --json events are made of
// it.
#pragma once

#include <cstdint>
#include <string>

namespace assay::host {

/// A run as shown on a line.
struct RunView {
  int64_t run_id = 0, attempt_id = 0;
  int64_t n = 1;        ///< attempt of the run
  int64_t ordinal = 0;  ///< of the cell in its study, from 0
  int64_t slot = 0;     ///< repeat
  std::string slug{};
  std::string state{};   ///< queued running ok oom fail timeout killed infra invalid
  std::string reason{};  ///< of a bad state
  std::string phase{};   ///< load build data init step eval done
  int64_t step = 0, steps = 0;
  double tokens_per_s = 0, loss = 0;
  int64_t allocated_bytes = 0;
  double elapsed_s = 0;
};

/// Counts of the runs that the supervisor was asked for.
struct Totals {
  int64_t runs = 0, queued = 0, running = 0, ok = 0, oom = 0, fail = 0, timeout = 0, killed = 0,
          infra = 0, invalid = 0;
  double eta_s = -1;  ///< median time of the runs that ended x runs left; < 0 before the first ends
  int64_t ended() const { return ok + oom + fail + timeout + killed + infra + invalid; }
};

/// Called from the supervisor's thread; must not block.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void started(const RunView&, const Totals&) {}
  virtual void progressed(const RunView&, const Totals&) {}
  virtual void ended(const RunView&, const Totals&) {}
  virtual void note(const std::string&) {}  ///< "waiting for ...", a retry, how to stop faster
};

}  // namespace assay::host
