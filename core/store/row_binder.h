// RowBinder: turns spool rows (JSON) into inserts, table by table. Private to core/store.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/store/connection.h"

namespace assay::store {

/// Prepared inserts for the rows of one spool. Rows must fit their table: a missing or unknown
/// column and a wrong type throw Error with the column, the value and the table.
class RowBinder {
 public:
  RowBinder(SQLite::Database& db, int64_t attempt_id, int64_t rank)
      : db_(db), attempt_id_(attempt_id), rank_(rank) {}

  /// True if `name` is a table that spools may fill.
  static bool knows(const std::string& name);
  void insert(const std::string& table, const nlohmann::json& row);

 private:
  SQLite::Statement& prepared(const std::string& table);

  SQLite::Database& db_;
  const int64_t attempt_id_;
  const int64_t rank_;
  std::map<std::string, SQLite::Statement> statements_;
};

}  // namespace assay::store
