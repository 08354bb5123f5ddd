// RowBinder: turns spool rows into inserts, table by table. Private to core/store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/store/connection.h"
#include "core/store/flat_row.h"

namespace assay::store {

struct TableSpec;

/// Prepared inserts for the rows of one spool. Rows must fit their table: a missing or unknown
/// column and a wrong type throw Error with the column, the value and the table.
///
/// Rows of a table that only grows (steps, samples) wait until `rows_per_insert` of them go in with
/// one statement: SQLite then sets up the check of a column's allowed words once for all of them.
/// An error tells of any of the waiting rows; with 1 it tells of the row just given.
class RowBinder {
 public:
  RowBinder(SQLite::Database& db, int64_t attempt_id, int64_t rank, size_t rows_per_insert)
      : db_(db), attempt_id_(attempt_id), rank_(rank), rows_per_insert_(rows_per_insert) {}

  /// True if `name` is a table that spools may fill.
  static bool knows(std::string_view name);
  /// Stores a row into the table that it names, which must be a known one; may take its content.
  void insert(FlatRow& row);
  /// Stores the rows that wait.
  void flush();

 private:
  struct Inserts {
    const TableSpec& table;
    std::optional<SQLite::Statement> one{}, many{};
    std::vector<FlatRow> rows{};  ///< the first `waiting` wait; the others keep their memory
    size_t waiting = 0;
    std::vector<size_t> places{};  ///< columns of the last row's values, tried first for the next
  };

  Inserts& inserts(const TableSpec& table);
  SQLite::Statement& prepared(Inserts& to, size_t rows);
  /// Fills placed_; answers the row's rank.
  int64_t place(Inserts& to, const FlatRow& row);
  void bind(SQLite::Statement& s, int index, Inserts& to, const FlatRow& row);
  /// One row, or rows_per_insert of them.
  void store(Inserts& to, std::span<const FlatRow> rows);

  SQLite::Database& db_;
  const int64_t attempt_id_;
  const int64_t rank_;
  const size_t rows_per_insert_;
  std::vector<const FlatValue*> placed_;  ///< by column; nothing = the row has no such value
  std::map<const TableSpec*, Inserts> inserts_;
};

}  // namespace assay::store
