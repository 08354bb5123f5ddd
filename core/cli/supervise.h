// What `run` and `resume` share: their flags, and the supervisor with its progress and table.
#pragma once

#include <memory>
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
};

void add_supervise_flags(CLI::App& command, SuperviseFlags& flags);

/// Runs the study and prints the comparison; the exit code goes to the context.
void supervise(store::Store& store, int64_t study_id, const std::string& study, grid::RunKeys keys,
               const SuperviseFlags& flags, Context& context);

}  // namespace assay::cli
