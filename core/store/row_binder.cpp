// The columns of the tables that spools fill, and how a row's value becomes a bound parameter.
#include "core/store/row_binder.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

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
  std::string_view name;
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

std::string insert_sql(const TableSpec& table, size_t rows) {
  std::string names = "attempt_id, rank", marks = "(?, ?", updates;
  for (const Column& column : table.columns) {
    const std::string name(column.name);
    names += ", " + name;
    marks += ", ?";
    updates += (updates.empty() ? "" : ", ") + name + "=excluded." + name;
  }
  marks += ")";
  std::string sql = "INSERT INTO " + std::string(table.name) + "(" + names + ") VALUES" + marks;
  for (size_t row = 1; row < rows; ++row) sql += ", " + marks;
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

RowBinder::Inserts& RowBinder::inserts(const TableSpec& table) {
  auto found = inserts_.find(&table);
  if (found == inserts_.end()) found = inserts_.emplace(&table, Inserts{table}).first;
  return found->second;
}

SQLite::Statement& RowBinder::prepared(Inserts& to, size_t rows) {
  std::optional<SQLite::Statement>& statement = rows == 1 ? to.one : to.many;
  if (!statement) statement.emplace(db_, insert_sql(to.table, rows));
  return *statement;
}

int64_t RowBinder::place(Inserts& to, const FlatRow& row) {
  const std::vector<Column>& columns = to.table.columns;
  int64_t rank = rank_;
  placed_.assign(columns.size(), nullptr);
  to.places.resize(std::max(to.places.size(), row.size()));
  for (size_t i = 0; i < row.size(); ++i) {
    const FlatValue& value = row[i];
    size_t& column = to.places[i];  // rows of one writer have one order
    if (column >= columns.size() || columns[column].name != value.key) {
      if (value.key == "t") continue;
      if (value.key == "rank") {  // -1: a figure of the whole run
        if (!is_integer(value)) wrong_value({"rank", Kind::integer}, value);
        rank = value.integer;
        continue;
      }
      const auto found = std::find_if(columns.begin(), columns.end(),
                                      [&](const Column& c) { return c.name == value.key; });
      if (found == columns.end()) throw Error("unknown column '" + value.key + "'");
      column = static_cast<size_t>(found - columns.begin());
    }
    placed_[column] = &value;
  }
  return rank;
}

void RowBinder::bind(SQLite::Statement& s, int index, Inserts& to, const FlatRow& row) {
  const int64_t rank = place(to, row);
  s.bind(index++, attempt_id_);
  s.bind(index++, rank);
  for (size_t i = 0; i < to.table.columns.size(); ++i) {
    const Column& column = to.table.columns[i];
    bind_column(s, index++, to.table, column, placed_[i], placed_[column.source]);
  }
}

void RowBinder::store(Inserts& to, std::span<const FlatRow> rows) {
  SQLite::Statement& s = prepared(to, rows.size());
  s.reset();
  int index = 1;
  for (const FlatRow& row : rows) {
    bind(s, index, to, row);
    index += static_cast<int>(to.table.columns.size()) + 2;
  }
  s.exec();
}

void RowBinder::insert(FlatRow& row) {
  const TableSpec& table = *find_table(row.table());
  Inserts& to = inserts(table);
  // A total may repeat a key, and a table may refer to it: such rows keep their order.
  if (rows_per_insert_ == 1 || *table.conflict != '\0') return store(to, {&row, 1});
  if (to.waiting == to.rows.size()) to.rows.emplace_back();
  std::swap(to.rows[to.waiting++], row);
  if (to.waiting < rows_per_insert_) return;
  store(to, std::span(to.rows).first(std::exchange(to.waiting, 0)));
}

void RowBinder::flush() {
  for (auto& [table, to] : inserts_) {
    for (const FlatRow& row : std::span(to.rows).first(std::exchange(to.waiting, 0))) {
      store(to, {&row, 1});
    }
  }
}

}  // namespace assay::store
