// Connection: one SQLite handle with assay's pragmas and error texts. Private to core/store.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace assay::store {

/// Throws what a user can act on: InfrastructureError for a full disk, else Error.
[[noreturn]] void rethrow(const SQLite::Exception& error, const std::filesystem::path& file);

class Connection {
 public:
  /// Creates the file if it is missing; refuses network file systems, foreign files and other
  /// schema versions.
  static Connection writer(const std::filesystem::path& file);
  /// OPEN_READONLY and query_only. A file in a folder that cannot be written, without a
  /// write-ahead log beside it, is opened as immutable.
  static Connection reader(const std::filesystem::path& file);

  SQLite::Database& db() const { return db_; }

  /// Runs f(db), with SQLite's exceptions translated.
  template <class F>
  auto read(F&& f) const {
    try {
      return f(db_);
    } catch (const SQLite::Exception& error) {
      rethrow(error, file_);
    }
  }

  /// The same inside BEGIN IMMEDIATE ... COMMIT; rolled back if f throws.
  template <class F>
  auto write(F&& f) const {
    return read([&](SQLite::Database& db) {
      SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
      if constexpr (std::is_void_v<decltype(f(db))>) {
        f(db);
        transaction.commit();
      } else {
        auto result = f(db);
        transaction.commit();
        return result;
      }
    });
  }

 private:
  Connection(SQLite::Database db, std::filesystem::path file)
      : db_(std::move(db)), file_(std::move(file)) {}

  mutable SQLite::Database db_;
  std::filesystem::path file_;
};

inline void bind_value(SQLite::Statement& s, int i, const std::string& v) { s.bind(i, v); }
inline void bind_value(SQLite::Statement& s, int i, const char* v) { s.bind(i, v); }
inline void bind_value(SQLite::Statement& s, int i, int64_t v) { s.bind(i, v); }
inline void bind_value(SQLite::Statement& s, int i, double v) { s.bind(i, v); }
template <class T>
void bind_value(SQLite::Statement& s, int i, const std::optional<T>& v) {
  v ? bind_value(s, i, *v) : s.bind(i);  // bind(i) alone is NULL
}

/// A statement with its parameters ?1, ?2, ... bound in order; nothing binds NULL.
template <class... Values>
SQLite::Statement statement(SQLite::Database& db, const char* sql, const Values&... values) {
  SQLite::Statement result(db, sql);
  int index = 0;
  (bind_value(result, ++index, values), ...);
  return result;
}

/// Runs a statement that gives no rows; the count of changed rows.
template <class... Values>
int64_t execute(SQLite::Database& db, const char* sql, const Values&... values) {
  return statement(db, sql, values...).exec();
}

/// The first column of the first row, if there is a row and it is not NULL.
template <class... Values>
std::optional<int64_t> one(SQLite::Database& db, const char* sql, const Values&... values) {
  auto query = statement(db, sql, values...);
  if (!query.executeStep() || query.isColumnNull(0)) return std::nullopt;
  return query.getColumn(0).getInt64();
}

/// A column that may be NULL.
std::optional<int64_t> column_int(SQLite::Statement& row, int index);
std::optional<std::string> column_text(SQLite::Statement& row, int index);

}  // namespace assay::store
