// Opening the database for writing and for reading, and the words for what can go wrong.
#include "core/store/connection.h"

#include <sqlite3.h>

#include <chrono>
#include <thread>

#include "assay/error.h"
#include "core/store/aggregates.h"
#include "core/store/schema.h"
#include "core/store/volume.h"

namespace assay::store {
namespace {

constexpr int kBusyTimeoutMs = 10000;
constexpr int kWalAttempts = 50;  // at creation the pragma itself can meet a lock

/// SQLite counts memory under one lock for all threads; nobody reads the count, and the importer
/// would wait for readers on it. Has no effect once SQLite runs, so every opening calls it first.
void leave_memory_uncounted() {
  static const int done = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  (void)done;
}

void set_wal(SQLite::Database& db) {
  for (int attempt = 1;; ++attempt) {
    try {
      db.exec("PRAGMA journal_mode=WAL");
      return;
    } catch (const SQLite::Exception& error) {
      const bool locked =
          error.getErrorCode() == SQLITE_BUSY || error.getErrorCode() == SQLITE_LOCKED;
      if (!locked || attempt == kWalAttempts) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

void make_folder(const std::filesystem::path& file) {
  if (!file.has_parent_path()) return;
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) {
    throw Error("cannot create the folder '" + file.parent_path().string() +
                    "' of the results database: " + error.message(),
                "choose another place with --db FILE");
  }
}

bool has_log(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file.string() + "-wal", error);
  return !error && size > 0;
}

/// A file: URI needs '%', '?' and '#' escaped.
std::string immutable_uri(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string()) {
    if (c == '%')
      uri += "%25";
    else if (c == '?')
      uri += "%3f";
    else if (c == '#')
      uri += "%23";
    else
      uri += c;
  }
  return uri + "?immutable=1";
}

SQLite::Database open_readonly(const std::filesystem::path& file) {
  SQLite::Database db(file.string(), SQLite::OPEN_READONLY, kBusyTimeoutMs);
  try {
    user_version(db);  // the first read is what opens the log
    return db;
  } catch (const SQLite::Exception& error) {
    const int code = error.getErrorCode();
    if ((code != SQLITE_CANTOPEN && code != SQLITE_READONLY) || has_log(file)) throw;
  }
  return SQLite::Database(immutable_uri(file), SQLite::OPEN_READONLY | SQLite::OPEN_URI,
                          kBusyTimeoutMs);
}

void require_exists(const std::filesystem::path& file) {
  if (std::filesystem::exists(file)) return;
  throw Error("there is no results database '" + file.string() + "'",
              "'assay run STUDY.yaml' creates it; another place: --db FILE");
}

}  // namespace

Connection Connection::writer(const std::filesystem::path& file) {
  leave_memory_uncounted();
  require_local(file);
  make_folder(file);
  try {
    SQLite::Database db(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
                        kBusyTimeoutMs);
    if (sqlite3_db_readonly(db.getHandle(), "main") == 1) {
      throw SQLite::Exception("attempt to write a readonly database", SQLITE_READONLY);
    }
    // trusted_schema stays on: with it off, SQLite 3.40 refuses the json_valid() of our own CHECK.
    db.exec(
        "PRAGMA foreign_keys=ON; PRAGMA synchronous=FULL; PRAGMA cell_size_check=ON;"
        "PRAGMA journal_size_limit=67108864");
    if (application_id(db) == 0 && user_version(db) == 0) {
      set_wal(db);
      create_schema(db);
    }
    require_version(db, file, true);
    return Connection(std::move(db), file);
  } catch (const SQLite::Exception& error) {
    rethrow(error, file);
  }
}

Connection Connection::reader(const std::filesystem::path& file) {
  leave_memory_uncounted();
  require_exists(file);
  require_local(file);
  try {
    SQLite::Database db = open_readonly(file);
    db.exec("PRAGMA query_only=ON; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON");
    require_version(db, file, false);
    add_aggregates(db);
    return Connection(std::move(db), file);
  } catch (const SQLite::Exception& error) {
    rethrow(error, file);
  }
}

void rethrow(const SQLite::Exception& error, const std::filesystem::path& file) {
  const std::string name = "'" + file.string() + "'";
  switch (error.getErrorCode()) {
    case SQLITE_FULL:
      throw InfrastructureError("the disk is full: nothing more can be stored in " + name,
                                "free some space, then 'assay resume': the spool files still hold "
                                "every row");
    case SQLITE_READONLY:
      throw Error("the results database " + name +
                      " cannot be written: it or its folder is "
                      "read-only",
                  "change its permissions, or choose another place with --db FILE");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      throw Error("the results database " + name +
                      " cannot be opened: it or its folder is not "
                      "accessible",
                  "check the path and its permissions, or choose another place with --db FILE");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error("the results database " + name + " has been locked by another writer for 10 s",
                  "'assay status' names the supervisor that is running");
    case SQLITE_NOTADB:
      throw Error(name + " is not an SQLite database", "choose another file with --db FILE");
    case SQLITE_CORRUPT:
      throw Error("the results database " + name + " is damaged: " + error.what(),
                  "'assay db check' lists the damage; the spool files can be imported again");
    case SQLITE_INTERRUPT:
      throw Error("the query was stopped: it ran past its time limit", "raise it with --timeout");
    default:
      throw Error("results database " + name + ": " + error.what());
  }
}

std::optional<int64_t> column_int(SQLite::Statement& row, int index) {
  if (row.isColumnNull(index)) return std::nullopt;
  return row.getColumn(index).getInt64();
}

std::optional<std::string> column_text(SQLite::Statement& row, int index) {
  if (row.isColumnNull(index)) return std::nullopt;
  return row.getColumn(index).getString();
}

}  // namespace assay::store
