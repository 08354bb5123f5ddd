// The columns of the tables that spools fill, and how a JSON value becomes a bound parameter.
#include "core/store/row_binder.h"

#include <bit>
#include <optional>
#include <vector>

#include "assay/error.h"
#include "core/base/spool.h"
#include "core/store/figure.h"

namespace assay::store {
namespace {

using nlohmann::json;

constexpr int64_t kLossNotFinite = 16;  // steps.flags

enum class Kind { integer, real, text };
enum class Need { required, optional, zero };  ///< zero: 0 if absent

struct Column {
  const char* name;
  Kind kind;
  Need need = Need::optional;
};

struct TableSpec {
  const char* name;
  std::vector<Column> columns;  ///< after attempt_id and rank
  const char* conflict = "";    ///< key of tables whose rows are totals so far: the last one counts
};

const TableSpec* find_table(const std::string& name) {
  using enum Kind;
  using enum Need;
  static const std::vector<TableSpec> tables = {
      {"steps",
       {{"step", integer, required},
        {"kind", text, required},
        {"flags", integer, zero},
        {"end_us", integer, required},
        {"wall_s", real, required},
        {"tokens", integer, required},
        {"tokens_total", integer, required},
        {"loss", real},
        {"loss_bits", integer},
        {"grad_norm", real},
        {"grad_norm_bits", integer},
        {"lr", real},
        {"data_wait_s", real},
        {"comm_exposed_s", real}}},
      {"samples",
       {{"name", text, required},
        {"step", integer, required},
        {"value", real},
        {"nonfinite", text}}},
      {"metrics",
       {{"name", text, required},
        {"value", real},
        {"nonfinite", text},
        {"unit", text, required},
        {"formula_id", text, required}},
       "attempt_id, name, rank"},
      {"collectives",
       {{"grp", text, required},
        {"op", text, required},
        {"dtype", text, required},
        {"phase", text, required},
        {"steps", integer, required},
        {"count", integer, required},
        {"payload_bytes", integer, required},
        {"wire_bytes", integer, required},
        {"total_s", real},
        {"exposed_s", real}},
       "attempt_id, rank, grp, op, dtype, phase"},
      {"memory",
       {{"phase", text, required},
        {"peak_allocated_bytes", integer},
        {"peak_reserved_bytes", integer},
        {"peak_rss_bytes", integer},
        {"limit_bytes", integer},
        {"alloc_retries", integer, zero}},
       "attempt_id, rank, phase"},
      {"memory_categories",
       {{"phase", text, required}, {"category", text, required}, {"bytes", integer, required}},
       "attempt_id, rank, phase, category"},
  };
  for (const TableSpec& table : tables) {
    if (name == table.name) return &table;
  }
  return nullptr;
}

std::string insert_sql(const TableSpec& table) {
  std::string names = "attempt_id, rank", marks = "?1, ?2", updates;
  int index = 2;
  for (const Column& column : table.columns) {
    names += ", " + std::string(column.name);
    marks += ", ?" + std::to_string(++index);
    updates +=
        (updates.empty() ? "" : ", ") + std::string(column.name) + "=excluded." + column.name;
  }
  std::string sql =
      "INSERT INTO " + std::string(table.name) + "(" + names + ") VALUES(" + marks + ")";
  if (*table.conflict != '\0') {
    sql += " ON CONFLICT(" + std::string(table.conflict) + ") DO UPDATE SET " + updates;
  }
  return sql;
}

[[noreturn]] void wrong_value(const Column& column, const json& value) {
  const char* allowed = column.kind == Kind::text      ? "a text"
                        : column.kind == Kind::integer ? "an integer"
                                                       : "a number";
  throw Error("'" + std::string(column.name) + "' must be " + allowed + "; got " + value.dump());
}

double as_real(const Column& column, const json& value) {
  if (value.is_number()) return value.get<double>();
  const auto named =
      value.is_string() ? nonfinite(value.get_ref<const std::string&>()) : std::nullopt;
  if (!named) wrong_value(column, value);
  return *named;
}

void bind_json(SQLite::Statement& s, int index, const Column& column, const json& value) {
  switch (column.kind) {
    case Kind::text:
      if (!value.is_string()) wrong_value(column, value);
      return s.bind(index, value.get_ref<const std::string&>());
    case Kind::integer:
      if (value.is_boolean()) return s.bind(index, int64_t{value.get<bool>()});
      if (!value.is_number_integer()) wrong_value(column, value);
      return s.bind(index, value.get<int64_t>());
    case Kind::real:
      return bind_value(s, index, split(as_real(column, value)).value);
  }
}

void require_known_columns(const TableSpec& table, const json& row) {
  for (const auto& [key, value] : row.items()) {
    bool known = key == "t" || key == "rank";
    for (const Column& column : table.columns) known = known || key == column.name;
    if (!known) throw Error("unknown column '" + key + "'");
  }
}

std::optional<double> real_of(const json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return std::nullopt;
  return as_real({key, Kind::real}, *found);
}

/// What follows from a value is added: bits, flag 16, the name of a non-finite number.
json completed(const std::string& table, const json& row) {
  json result = row;
  if (table == "steps") {
    for (const char* key : {"loss", "grad_norm"}) {
      const auto value = real_of(row, key);
      const std::string bits = std::string(key) + "_bits";
      if (value && !row.contains(bits)) result[bits] = std::bit_cast<int64_t>(*value);
    }
    const auto loss = real_of(row, "loss");
    if (loss && !std::isfinite(*loss))
      result["flags"] = row.value("flags", int64_t{0}) | kLossNotFinite;
  } else if (table == "samples" || table == "metrics") {
    const auto value = real_of(row, "value");
    const auto named = value ? split(*value).nonfinite : std::nullopt;
    if (named) result["nonfinite"] = *named;
  }
  return result;
}

}  // namespace

bool RowBinder::knows(const std::string& name) { return find_table(name) != nullptr; }

SQLite::Statement& RowBinder::prepared(const std::string& table) {
  auto found = statements_.find(table);
  if (found == statements_.end()) {
    SQLite::Statement fresh(db_, insert_sql(*find_table(table)));
    found = statements_.emplace(table, std::move(fresh)).first;
  }
  return found->second;
}

void RowBinder::insert(const std::string& name, const json& given) {
  const TableSpec& table = *find_table(name);
  require_known_columns(table, given);
  const json row = completed(name, given);
  SQLite::Statement& s = prepared(name);
  s.reset();
  s.bind(1, attempt_id_);
  s.bind(2, row.value("rank", rank_));  // -1: a figure of the whole run
  int index = 2;
  for (const Column& column : table.columns) {
    ++index;
    const auto value = row.find(column.name);
    if (value != row.end() && !value->is_null()) {
      bind_json(s, index, column, *value);
    } else if (column.need == Need::required) {
      throw Error("'" + std::string(column.name) + "' is missing");
    } else {
      column.need == Need::zero ? s.bind(index, int64_t{0}) : s.bind(index);
    }
  }
  s.exec();
}

}  // namespace assay::store
