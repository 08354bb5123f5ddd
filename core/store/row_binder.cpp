// The columns of the tables that spools fill, and how a row's value becomes a bound parameter.
#include "core/store/row_binder.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "assay/error.h"
#include "core/base/spool.h"
#include "core/store/figure.h"

namespace assay::store {
namespace {

constexpr int64_t kLossNotFinite = 16;  // steps.flags

enum class Kind { integer, real, text };
enum class Need { required, optional, zero };  ///< zero: 0 if absent
/// What follows from another column of the row: its IEEE-754 bits, flag 16, the name of a
/// number that is none.
enum class Follows { nothing, bits, flag, name };

struct Column {
  const char* name;
  Kind kind;
  Need need = Need::optional;
  Follows follows = Follows::nothing;
  size_t source = 0;  ///< index of the column that it follows from
};

}  // namespace

struct TableSpec {
  const char* name;
  std::vector<Column> columns;  ///< after attempt_id and rank
  const char* conflict = "";    ///< key of tables whose rows are totals so far: the last one counts
};

namespace {

std::vector<TableSpec> make_tables() {
  using enum Kind;
  using enum Need;
  constexpr size_t kLoss = 7, kGradNorm = 9;  // places in `steps`
  return {
      {"steps",
       {{"step", integer, required},
        {"kind", text, required},
        {"flags", integer, zero, Follows::flag, kLoss},
        {"end_us", integer, required},
        {"wall_s", real, required},
        {"tokens", integer, required},
        {"tokens_total", integer, required},
        {"loss", real},
        {"loss_bits", integer, optional, Follows::bits, kLoss},
        {"grad_norm", real},
        {"grad_norm_bits", integer, optional, Follows::bits, kGradNorm},
        {"lr", real},
        {"data_wait_s", real},
        {"comm_exposed_s", real}}},
      {"samples",
       {{"name", text, required},
        {"step", integer, required},
        {"value", real},
        {"nonfinite", text, optional, Follows::name, 2}}},
      {"metrics",
       {{"name", text, required},
        {"value", real},
        {"nonfinite", text, optional, Follows::name, 1},
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
}

const TableSpec* find_table(std::string_view name) {
  static const std::vector<TableSpec> tables = make_tables();
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const TableSpec& table) { return name == table.name; });
  return found == tables.end() ? nullptr : &*found;
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

[[noreturn]] void wrong_value(const Column& column, const FlatValue& value) {
  const char* allowed = column.kind == Kind::text      ? "a text"
                        : column.kind == Kind::integer ? "an integer"
                                                       : "a number";
  throw Error("'" + std::string(column.name) + "' must be " + allowed + "; got " +
              value.json().dump());
}

bool is_integer(const FlatValue& value) {
  return value.kind == FlatValue::Kind::integer || value.kind == FlatValue::Kind::boolean;
}

double as_real(const Column& column, const FlatValue& value) {
  if (value.kind == FlatValue::Kind::real || value.kind == FlatValue::Kind::integer) {
    return value.real;
  }
  const auto named = value.kind == FlatValue::Kind::text ? nonfinite(value.text) : std::nullopt;
  if (!named) wrong_value(column, value);
  return *named;
}

void bind_given(SQLite::Statement& s, int index, const Column& column, const FlatValue& value) {
  switch (column.kind) {
    case Kind::text:
      if (value.kind != FlatValue::Kind::text) wrong_value(column, value);
      return s.bindNoCopy(index, value.text);  // the row outlives the insert
    case Kind::integer:
      if (!is_integer(value)) wrong_value(column, value);
      return s.bind(index, value.integer);
    case Kind::real:
      return bind_value(s, index, split(as_real(column, value)).value);
  }
}

/// Binds what follows from `source`; false if nothing does.
bool bind_following(SQLite::Statement& s, int index, const Column& column, const FlatValue* given,
                    double source) {
  switch (column.follows) {
    case Follows::nothing:
      return false;
    case Follows::bits:
      if (given != nullptr) return false;
      s.bind(index, std::bit_cast<int64_t>(source));
      return true;
    case Follows::flag:
      if (std::isfinite(source)) return false;
      s.bind(index, (given != nullptr ? given->integer : 0) | kLossNotFinite);
      return true;
    case Follows::name:
      if (std::isfinite(source)) return false;
      s.bind(index, *split(source).nonfinite);
      return true;
  }
  return false;
}

bool has_value(const FlatValue* value) {
  return value != nullptr && value->kind != FlatValue::Kind::null;
}

void bind_column(SQLite::Statement& s, int index, const TableSpec& table, const Column& column,
                 const FlatValue* given, const FlatValue* source) {
  if (column.follows != Follows::nothing && has_value(source)) {
    const double value = as_real(table.columns[column.source], *source);
    if (bind_following(s, index, column, given, value)) return;
  }
  if (has_value(given)) return bind_given(s, index, column, *given);
  if (column.need == Need::required) {
    throw Error("'" + std::string(column.name) + "' is missing");
  }
  column.need == Need::zero ? s.bind(index, int64_t{0}) : s.bind(index);
}

}  // namespace

bool RowBinder::knows(std::string_view name) { return find_table(name) != nullptr; }

SQLite::Statement& RowBinder::prepared(const TableSpec& table) {
  auto found = statements_.find(&table);
  if (found == statements_.end()) {
    SQLite::Statement fresh(db_, insert_sql(table));
    found = statements_.emplace(&table, std::move(fresh)).first;
  }
  return found->second;
}

void RowBinder::place(const TableSpec& table, const FlatRow& row) {
  const std::vector<Column>& columns = table.columns;
  row_rank_ = rank_;
  placed_.assign(columns.size(), nullptr);
  for (size_t i = 0; i < row.size(); ++i) {
    const FlatValue& value = row[i];
    if (value.key == "t") continue;
    if (value.key == "rank") {  // -1: a figure of the whole run
      if (!is_integer(value)) wrong_value({"rank", Kind::integer}, value);
      row_rank_ = value.integer;
      continue;
    }
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const Column& column) { return value.key == column.name; });
    if (found == columns.end()) throw Error("unknown column '" + value.key + "'");
    placed_[static_cast<size_t>(found - columns.begin())] = &value;
  }
}

void RowBinder::insert(const FlatRow& row) {
  const TableSpec& table = *find_table(row.table());
  place(table, row);
  SQLite::Statement& s = prepared(table);
  s.reset();
  s.bind(1, attempt_id_);
  s.bind(2, row_rank_);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    bind_column(s, static_cast<int>(i) + 3, table, column, placed_[i], placed_[column.source]);
  }
  s.exec();
}

}  // namespace assay::store
