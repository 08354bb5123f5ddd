// Files of the host besides those that plugins use too (assay/files.h).
#pragma once

#include <cstdint>

#include "assay/files.h"

namespace assay {

/// CRC-32C (Castagnoli): "123456789" -> 0xe3069283.
uint32_t crc32c(std::string_view content);
/// As the spool prints it: 8 lower-case hex digits.
std::string crc32c_hex(std::string_view content);

/// Folder of the running executable.
std::filesystem::path executable_dir();

}  // namespace assay
