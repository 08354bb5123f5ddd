// Creating, checking and migrating the schema. Versions live in the file's header.
#include <SQLiteCpp/Backup.h>
#include <sqlite3.h>

#include "assay/error.h"
#include "core/store/connection.h"
#include "core/store/schema.h"
#include "core/store/volume.h"

namespace assay::store {
namespace {

constexpr int kMigratorWaitMs = 60000;  // a second migrator waits for the first

void set_pragma(SQLite::Database& db, const char* name, int value) {
  db.exec("PRAGMA " + std::string(name) + "=" + std::to_string(value));
}

/// The oldest version whose readers understand this file; nothing in a file without meta.
int64_t min_reader(SQLite::Database& db) {
  if (!db.tableExists("meta")) return INT64_MAX;
  return one(db, "SELECT CAST(value AS INTEGER) FROM meta WHERE key='min_reader'")
      .value_or(INT64_MAX);
}

[[noreturn]] void refuse_foreign(const std::filesystem::path& file) {
  throw Error("'" + file.string() + "' is an SQLite file, but no results database of assay",
              "choose another file with --db FILE");
}

[[noreturn]] void refuse_newer(const std::filesystem::path& file, int version, int known) {
  throw Error("the results database '" + file.string() + "' has schema version " +
                  std::to_string(version) + "; " + created_by() + " knows versions up to " +
                  std::to_string(known),
              "use the newer assay that wrote it, or another file with --db FILE");
}

void require_references(SQLite::Database& db, const std::filesystem::path& file) {
  SQLite::Statement broken(db, "PRAGMA foreign_key_check");
  if (!broken.executeStep()) return;
  throw Error("migrating '" + file.string() + "' would break references of table '" +
                  broken.getColumn(0).getString() + "'; nothing was changed",
              "run 'assay db check' and report this");
}

void back_up(SQLite::Database& db, const std::filesystem::path& target) {
  SQLite::Database copy(target.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  SQLite::Backup(copy, db).executeStep();
}

}  // namespace

int user_version(SQLite::Database& db) { return static_cast<int>(*one(db, "PRAGMA user_version")); }
int application_id(SQLite::Database& db) {
  return static_cast<int>(*one(db, "PRAGMA application_id"));
}

void create_schema(SQLite::Database& db) {
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::EXCLUSIVE);
  if (application_id(db) != 0 || user_version(db) != 0) return;    // another process was first
  if (*one(db, "SELECT count(*) FROM sqlite_schema") > 0) return;  // not ours: refused later
  for (const std::string_view script : migrations()) db.exec(std::string(script));
  execute(db, "INSERT INTO meta VALUES('created_by', ?1)", created_by());
  execute(db, "INSERT INTO meta VALUES('db_uuid', lower(hex(randomblob(16))))");
  execute(db, "INSERT INTO meta VALUES('min_reader', ?1)", std::to_string(current_version()));
  set_pragma(db, "application_id", kApplicationId);
  set_pragma(db, "user_version", current_version());
  transaction.commit();
}

void require_version(SQLite::Database& db, const std::filesystem::path& file, bool to_write) {
  if (application_id(db) != kApplicationId) refuse_foreign(file);
  const int version = user_version(db);
  const int known = current_version();
  if (version == known) return;
  if (version > known) {
    if (!to_write && min_reader(db) <= known) return;
    refuse_newer(file, version, known);
  }
  throw Error("the results database '" + file.string() + "' has schema version " +
                  std::to_string(version) + "; " + created_by() + " needs " + std::to_string(known),
              "assay db migrate --db " + file.string() + "  (keeps a backup beside it)");
}

MigrationResult migrate(const std::filesystem::path& file,
                        std::span<const std::string_view> scripts) {
  require_local(file);
  const int target = static_cast<int>(scripts.size());
  try {
    SQLite::Database db(file.string(), SQLite::OPEN_READWRITE, kMigratorWaitMs);
    if (application_id(db) != kApplicationId) refuse_foreign(file);
    MigrationResult result{.from = user_version(db), .to = target, .backup = {}};
    if (result.from > target) refuse_newer(file, result.from, target);
    if (result.from == target) return result;
    result.backup = file.string() + ".v" + std::to_string(result.from) + ".bak";
    back_up(db, result.backup);
    db.exec("PRAGMA foreign_keys=OFF");  // scripts may rebuild tables; checked before the commit
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::EXCLUSIVE);
    for (int version = user_version(db); version < target; ++version) {
      db.exec(std::string(scripts[static_cast<size_t>(version)]));
    }
    require_references(db, file);
    set_pragma(db, "user_version", target);
    transaction.commit();
    return result;
  } catch (const SQLite::Exception& error) {
    rethrow(error, file);
  }
}

}  // namespace assay::store
