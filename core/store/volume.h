// Volume: what kind of file system a database lies on.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace assay::store {

/// Name of a network file system by statfs's f_type ("NFS", "SMB", "Lustre", "FUSE", ...); nothing
/// for local ones.
std::optional<std::string> network_file_system(unsigned long type);

/// Throws Error if `file` (or its nearest existing folder) lies on a network file system: SQLite's
/// write-ahead log needs memory shared by all who open the file.
void require_local(const std::filesystem::path& file);

}  // namespace assay::store
