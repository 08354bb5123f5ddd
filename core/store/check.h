// Integrity of a database file, for `assay db check`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::store {

/// What SQLite's integrity_check and foreign_key_check find, and spools that declared other counts
/// than were imported; empty = sound. Throws Error if the file cannot be opened at all.
std::vector<std::string> find_damage(const std::filesystem::path& file);

}  // namespace assay::store
