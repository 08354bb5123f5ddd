// Files for plugins: whole-file reads, atomic durable writes, SHA-256 and the cache folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "assay/api.h"

namespace assay {

/// Throws Error naming the file and the reason.
ASSAY_API std::string read_file(const std::filesystem::path& file);

/// Writes beside the target, fsyncs, renames, fsyncs the folder: the file is old or new, never
/// half. Throws Error.
ASSAY_API void write_file_atomically(const std::filesystem::path& file, std::string_view content);

/// 64 lower-case hex digits (libcrypto).
ASSAY_API std::string sha256(std::string_view content);
ASSAY_API std::string sha256_file(const std::filesystem::path& file);

/// $ASSAY_CACHE_DIR, else $XDG_CACHE_HOME/assay, else ~/.cache/assay; created with mode 0700.
ASSAY_API std::filesystem::path cache_dir();

}  // namespace assay
