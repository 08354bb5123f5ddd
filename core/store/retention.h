// Retention: which files of runs and caches a policy lets go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/store/reader.h"

namespace assay::store {

enum class Keepsake { spools, logs, checkpoints, caches };
const char* name_of(Keepsake kind);

struct RetentionPolicy {
  std::set<Keepsake> kinds = {Keepsake::spools, Keepsake::logs, Keepsake::checkpoints,
                              Keepsake::caches};
  int64_t older_us = 0;  ///< only what ended, or was last used, before now - this
};

/// A file, or the folder of a checkpoint.
struct Disposable {
  Keepsake kind = Keepsake::spools;
  std::filesystem::path path{};
  int64_t bytes = 0;
  int64_t run_id = 0;  ///< 0 for caches
};

struct RetentionPlan {
  std::vector<Disposable> disposable{};  ///< by kind, then path
  std::vector<std::string> kept{};       ///< what the policy would have let go, and why it may not
  int64_t bytes = 0;
};

/// Looks at the attempt folders below `runs` that the database knows, and at files of `caches`.
/// Never in the plan: files of a running attempt, of a run that a baseline names, a spool of which
/// a byte has not been imported, anything outside of these two folders, anything the database does
/// not know.
RetentionPlan plan_retention(const Reader& reader, const std::filesystem::path& runs,
                             const std::filesystem::path& caches, const RetentionPolicy& policy,
                             int64_t now_us);

/// Deletes what the plan lists, then attempt folders that hold nothing else. Returns the bytes that
/// are free now; a file that is gone already counts 0. Throws InfrastructureError at the first one
/// that cannot be deleted.
int64_t delete_all(const RetentionPlan& plan);

}  // namespace assay::store
