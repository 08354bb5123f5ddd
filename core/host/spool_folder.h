// Spool folders of ranks that torchrun or Slurm started: their runs are made from the open rows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/store/store.h"

namespace assay::host {

/// The spools of one cell in one folder: as many as the cell has ranks, when all have come.
struct SpoolGroup {
  std::filesystem::path folder{};
  std::vector<std::filesystem::path> files{};  ///< by rank, absolute; missing ranks are empty
  nlohmann::json open{};                       ///< of rank 0, or of the lowest rank there is
  int world = 1;
};

/// Searches `folder` and what is below it. Spools that a supervisor owns (attempt_id > 0) are left
/// to it. Throws DiagnosticError (H07) for an open row that lacks what a cell needs.
std::vector<SpoolGroup> find_spool_groups(const std::filesystem::path& folder);

struct ImportedGroup {
  std::string slug{};
  int64_t run_id = 0, rows = 0;
  std::string state{};  ///< running while a rank has not closed its spool
  std::string note{};   ///< a damaged line, what is missing
};

/// Imports groups, exactly once however often it is called: a file is known by its path and by how
/// far it was read. Registers itself as a supervisor of the study while it works.
class SpoolImporter {
 public:
  /// `study`: its name; empty = as the open rows say.
  SpoolImporter(store::Store& store, std::string study);
  ~SpoolImporter();
  ImportedGroup import(const SpoolGroup& group);

 private:
  struct Target {
    int64_t attempt_id = 0, run_id = 0;
    std::string state{};
  };
  std::optional<Target> known(const SpoolGroup& group) const;
  Target make_run(const SpoolGroup& group);
  int64_t free_slot(const std::string& cell_id) const;

  store::Store& store_;
  const std::string study_;
  store::Env env_{};
  int64_t supervisor_id_ = 0;
};

}  // namespace assay::host
