// Merging databases: rows of another file, found again by their content ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/store/store.h"

namespace assay::store {

struct MergeResult {
  int64_t studies = 0, cells = 0;
  int64_t runs = 0;       ///< ended runs that were taken, with attempts and samples
  int64_t runs_kept = 0;  ///< ended runs that were here already: never replaced
  /// Ended runs that are not here: of pairs of another machine, of pairs that have begun here, and
  /// of pairs that are not whole there.
  int64_t runs_left_out = 0;
  int64_t steps = 0;
  int64_t comparisons = 0;  ///< new here, or the same as one here
  int64_t pairs = 0;        ///< new here
};

/// Takes env, plugins, studies, cells and ended runs of `from` (of one study by name, or all) in
/// one transaction, with their comparisons, pairs, verdicts and accepted values. A run is the same
/// when cell, machine, purpose, comparison and slot are; one that waits here is filled with the
/// other file's result, a pair as a whole. A comparison is the same when study and cells are; pairs
/// of another machine than those here stay out, and verdicts stay that rest on a pair which the
/// other file has not. Merging twice changes nothing. Throws Error for a file that is no database
/// of this schema version.
MergeResult merge(Store& into, const std::filesystem::path& from,
                  const std::optional<std::string>& study = {});

/// Makes log_path and spool paths of every attempt point below `folder` (an exported study).
void relocate_logs(Store& store, const std::filesystem::path& folder);

}  // namespace assay::store
