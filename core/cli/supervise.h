// What `run` and `resume` share: their flags, and the supervisor with its progress and table.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cli/context.h"
#include "core/store/store.h"

namespace CLI {
class App;
}

namespace assay::cli {

struct SuperviseFlags {
  std::string filter{};
  std::vector<std::string> only{};
  bool fail_fast = false, join = false, no_template = false, strict_oom = false;
  int devices = 0;  ///< 0: as the study says
  /// No pair starts whose two runs would end later, by the median time of runs so far.
  std::optional<std::chrono::steady_clock::time_point> no_pair_ends_after{};
  bool table = true;  ///< print the comparison of all recipes at the end
  std::string resume_from{};
};

void add_supervise_flags(CLI::App& command, SuperviseFlags& flags);

/// Runs the study and prints the comparison; the exit code goes to the context.
void supervise(store::Store& store, int64_t study_id, const std::string& study, grid::RunKeys keys,
               const SuperviseFlags& flags, Context& context);

/// The same for these runs alone, whatever their purpose; no table.
void supervise_runs(store::Store& store, int64_t study_id, const std::string& study,
                    grid::RunKeys keys, std::vector<int64_t> runs, const SuperviseFlags& flags,
                    Context& context);

}  // namespace assay::cli
