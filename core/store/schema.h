// Schema versions: the numbered SQL files, creation and migration of a database.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace SQLite {
class Database;
}

namespace assay::store {

inline constexpr int kApplicationId = 0x61737931;  ///< "asy1", in the file's header

/// Script i brings version i to version i + 1; a new file gets all of them.
std::span<const std::string_view> migrations();
inline int current_version() { return static_cast<int>(migrations().size()); }
std::string created_by();  ///< "assay 0.1.0", for meta

int user_version(SQLite::Database& db);
int application_id(SQLite::Database& db);

/// Makes an empty file a database of the current version. Two processes may do so at once: one
/// creates, the other waits and finds it done.
void create_schema(SQLite::Database& db);

/// Throws Error unless the file is assay's and of the current version. A newer file may be read
/// (never written) if its meta.min_reader allows this version.
void require_version(SQLite::Database& db, const std::filesystem::path& file, bool to_write);

struct MigrationResult {
  int from = 0, to = 0;          ///< equal: nothing to do
  std::filesystem::path backup;  ///< <file>.v<from>.bak, empty when nothing was done
};

/// Brings an older file to the newest version: backup, then every script inside one exclusive
/// transaction that ends with foreign_key_check. A second migrator waits and finds it done.
/// Throws Error and leaves the file as it was. Tests pass their own scripts.
MigrationResult migrate(const std::filesystem::path& file,
                        std::span<const std::string_view> scripts = migrations());

}  // namespace assay::store
