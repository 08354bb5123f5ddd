// Loader: opens accepted plugin files in a worker and registers their components.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/api.h"
#include "core/plugin/note.h"

namespace assay {

struct LoadedPlugin {
  std::filesystem::path file{};
  Note note{};
  std::string sha256{};                 ///< of the file
  std::string stamp{};                  ///< text of the git stamp beside it, empty if there is none
  std::vector<std::string> warnings{};  ///< of the handshake
};

/// Steps 1-7 of plugin-boundary.md 4 for one file; a file that is open already is not opened
/// again. Throws DiagnosticError: P01 and P04-P09.
ASSAY_API const LoadedPlugin& load_plugin(const std::filesystem::path& file);

/// Loads all of them, CUDA plugins first, then freezes the registry. Call it before any thread and
/// any tensor: LibTorch looks for its CUDA hooks once.
ASSAY_API void load_plugins(const std::vector<std::filesystem::path>& files);

ASSAY_API std::vector<const LoadedPlugin*> loaded_plugins();

/// Runs the shutdown functions, last loaded first; call it before main returns.
ASSAY_API void shutdown_plugins();

}  // namespace assay
