// Replay: a stored run from the database alone: what it ran with, what differs here, and the run
// that repeats it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/evidence/verdict.h"
#include "core/grid/plan.h"
#include "core/store/reader.h"
#include "core/store/store.h"

namespace assay::host {

/// What a replay finds on this machine.
struct Installed {
  grid::Binaries binaries{};
  store::Env env{};
  std::vector<std::filesystem::path> plugin_folders{};  ///< searched for a plugin that moved
};

/// One thing that is not as it was; texts are whole, hashes with all digits.
struct Changed {
  enum class What { plugin, libassay, worker, libtorch, machine };
  What what = What::machine;
  std::string name{};         ///< "plugin adamw", "worker", "cpu_model"
  std::string then{}, now{};  ///< empty: not recorded, not there
};

struct Replay {
  int64_t run_id = 0;
  std::string state{}, reason{};  ///< how the stored run ended
  store::StudyInfo study{};       ///< the newest that has the cell
  store::Cell cell{};             ///< as stored
  nlohmann::json binaries{};      ///< of the cell, as they are here
  std::vector<Changed> changed{};
  std::vector<std::filesystem::path> new_files{};  ///< plugins in place of the recorded ones
  std::vector<Diagnostic> refusals{};              ///< plugins that changed (H08) or are gone (H09)

  bool same_binaries() const { return binaries == cell.binaries; }
};

/// Reads run and cell and compares them with what is installed. Throws Error for an unknown run,
/// DiagnosticError H10 when a file that the configuration names is gone or has another content: no
/// run here could be the stored one.
Replay plan_replay(const store::Reader& reader, int64_t run_id, const Installed& installed);

/// Refusals that stand: of a changed plugin only unless `accept_binaries`; a plugin that is nowhere
/// stays refused.
std::vector<Diagnostic> standing(const Replay& replay, bool accept_binaries);

/// T0 on the same hardware and LibTorch, else T1: other kernels sum in another order. Changed code
/// does not lower the tier: equal bits are what it is asked for.
evidence::TierChoice replay_tier(const Replay& replay);

/// The queued run, of purpose `replay`. With other binaries its cell has its own id and stands in
/// the study "<name>-replay".
struct QueuedReplay {
  int64_t study_id = 0, run_id = 0;
  std::string study{};
};
QueuedReplay queue_replay(store::Store& store, const Replay& replay, const Installed& installed);

}  // namespace assay::host
