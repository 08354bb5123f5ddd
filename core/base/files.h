// Files: whole-file reads, atomic durable writes, SHA-256 and the folders that assay uses.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay {

/// Throws Error naming the file and the reason.
std::string read_file(const std::filesystem::path& file);

/// Writes beside the target, fsyncs, renames, fsyncs the folder: the file is old or new, never
/// half. Throws Error.
void write_file_atomically(const std::filesystem::path& file, std::string_view content);

/// 64 lower-case hex digits (libcrypto).
std::string sha256(std::string_view content);
std::string sha256_file(const std::filesystem::path& file);

/// CRC-32C (Castagnoli) as the spool prints it: 8 lower-case hex digits.
std::string crc32c_hex(std::string_view content);

/// $ASSAY_CACHE_DIR, else $XDG_CACHE_HOME/assay, else ~/.cache/assay; created with mode 0700.
std::filesystem::path cache_dir();

/// Folder of the running executable.
std::filesystem::path executable_dir();

}  // namespace assay
