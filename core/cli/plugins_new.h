// `assay plugins new`: a working identity plugin of a kind, from the installed templates.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/kind.h"

namespace assay::cli {

/// Writes the five files of a new plugin into `folder`, which must not exist; gives their paths.
/// Throws Error for a bad name or a folder that is there.
std::vector<std::filesystem::path> new_plugin(Kind kind, const std::string& name,
                                              const std::filesystem::path& folder);

}  // namespace assay::cli
