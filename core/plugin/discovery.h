// Discovery: the plugin files of the searched folders, judged by their notes alone.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/plugin/catalogue.h"

namespace assay {

/// Every `*.assay.so` of the folders, in their order, by name within one; a file that is found
/// twice (one inode) counts once. Folders that do not exist are skipped.
std::vector<std::unique_ptr<PluginFile>> discover(
    const std::vector<std::filesystem::path>& folders);

/// One file, judged.
PluginFile judge(const std::filesystem::path& file);

/// Relative to the current folder if it lies below, else absolute.
std::string place_of(const std::filesystem::path& file);

}  // namespace assay
