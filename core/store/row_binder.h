// RowBinder: turns spool rows into inserts, table by table. Private to core/store.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/store/connection.h"
#include "core/store/flat_row.h"

namespace assay::store {

struct TableSpec;

/// Prepared inserts for the rows of one spool. Rows must fit their table: a missing or unknown
/// column and a wrong type throw Error with the column, the value and the table.
class RowBinder {
 public:
  RowBinder(SQLite::Database& db, int64_t attempt_id, int64_t rank)
      : db_(db), attempt_id_(attempt_id), rank_(rank) {}

  /// True if `name` is a table that spools may fill.
  static bool knows(std::string_view name);
  /// Stores a row into the table that it names, which must be a known one.
  void insert(const FlatRow& row);

 private:
  SQLite::Statement& prepared(const TableSpec& table);
  void place(const TableSpec& table, const FlatRow& row);

  SQLite::Database& db_;
  const int64_t attempt_id_;
  const int64_t rank_;
  int64_t row_rank_ = 0;                  ///< the row's own, if it names one
  std::vector<const FlatValue*> placed_;  ///< by column; nothing = the row has no such value
  std::map<const TableSpec*, SQLite::Statement> statements_;
};

}  // namespace assay::store
