// Supervisor: runs the queued runs of one study in worker processes and writes every state.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/grid/plan.h"
#include "core/host/observer.h"
#include "core/store/store.h"

namespace assay::host {

/// Waits of the life cycle; tests shorten them.
struct Patience {
  std::chrono::milliseconds heartbeat_limit = std::chrono::seconds(30);
  std::chrono::milliseconds stop_grace = std::chrono::seconds(10);  ///< SIGTERM to SIGKILL
  std::chrono::milliseconds peer_grace = std::chrono::seconds(5);   ///< for the ranks left behind
  std::chrono::milliseconds stack_grace = std::chrono::milliseconds(500);  ///< SIGQUIT to SIGKILL
  std::vector<std::chrono::milliseconds> retry_delays = {std::chrono::seconds(10),
                                                         std::chrono::seconds(60)};
};

struct SupervisorOptions {
  int64_t study_id = 0;
  std::string study{};              ///< its name, for messages
  std::filesystem::path results{};  ///< runs/ and the ballast live here
  std::filesystem::path worker;     ///< the assay-worker executable
  grid::RunKeys keys{};             ///< `run:` of the study; part of no id
  Patience patience{};
  bool use_template = true;
  bool fail_fast = false;
  bool join = false;        ///< work beside another supervisor of the study
  bool strict_oom = false;  ///< oom counts as bad for the exit code
  std::vector<std::string> argv{};
  /// No pair starts whose two runs would end later, by the median time of runs so far.
  std::optional<std::chrono::steady_clock::time_point> no_pair_ends_after{};
  /// Where runs start: step 0, or what resume_point.h says of --resume-from.
  std::string resume_from{};
  /// States to run; infra and killed runs are queued again. Others (`fail`, ...) only if named.
  std::vector<std::string> only = {"queued", "killed", "infra"};
  /// These runs alone, whatever their purpose; empty = the measured runs and pairs of the study.
  std::vector<int64_t> runs{};
  /// Which runs are meant (--filter); empty = all of the study.
  std::function<bool(const store::QueuedRun&)> select{};
};

/// 0 all final and none bad, 1 fail/timeout/invalid, 4 infra or nothing ran, 130/143 stopped.
struct SupervisorResult {
  int exit_code = 0;
  Totals totals{};
};

/// One study, one machine, one thread: the store's only writer. Run folders (`runs/`) and the
/// ballast lie beside the database. Handles SIGINT and SIGTERM while
/// run() lasts. Throws DiagnosticError (exit 2) before anything starts: another supervisor of the
/// study is alive (H01), a cell needs more devices than there are (H02), the disk is nearly
/// full (H03).
class Supervisor {
 public:
  Supervisor(store::Store& store, SupervisorOptions options, Observer& observer);
  ~Supervisor();
  SupervisorResult run();

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace assay::host
