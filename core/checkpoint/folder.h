// Folders of checkpoints: `step-00000010/` each, and `latest`, which names the newest whole one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/manifest.h"

namespace assay::checkpoint {

/// A run's checkpoints lie below its folder, in this one.
inline constexpr const char* kFolderName = "checkpoints";

std::string step_name(int64_t step);  ///< "step-00000010"

/// Where the ranks write while a checkpoint is not whole.
std::filesystem::path temporary_folder(const std::filesystem::path& folder, int64_t step);

struct SavedStep {
  int64_t step = 0;
  std::filesystem::path folder{};
};

/// Whole checkpoints, ascending by step.
std::vector<SavedStep> saved_steps(const std::filesystem::path& folder);

/// The checkpoint that `path` means: itself, else the newest of a folder of checkpoints or of a
/// run's folder; with `step`, that one. Throws Error naming what is there.
std::filesystem::path find_checkpoint(const std::filesystem::path& path,
                                      std::optional<int64_t> step = {});

/// Writes the manifest, makes the temporary folder of its step the checkpoint, and points `latest`
/// to it; a crash at any moment leaves the previous checkpoint whole. Throws InfrastructureError.
void commit(const std::filesystem::path& folder, const Manifest& manifest);

/// Deletes all but the newest `keep`; 0 keeps all.
void keep_newest(const std::filesystem::path& folder, int64_t keep);

/// Removes what saves that never ended have left.
void remove_leftovers(const std::filesystem::path& folder);

}  // namespace assay::checkpoint
