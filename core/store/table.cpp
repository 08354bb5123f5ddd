// Running a query and reading its values.
#include "core/store/table.h"

#include <sqlite3.h>

#include <algorithm>
#include <cctype>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/store/connection.h"

namespace assay::store {
namespace {

constexpr int kInstructionsPerCheck = 10000;

Value value_of(const SQLite::Column& column) {
  if (column.isNull()) return std::monostate{};
  if (column.isInteger()) return column.getInt64();
  if (column.isFloat()) return column.getDouble();
  return column.getString();
}

void bind_field(SQLite::Statement& s, int index, const Value& value) {
  std::visit(
      [&](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
          s.bind(index);
        else
          s.bind(index, v);
      },
      value);
}

/// SQLite would run the first statement and say nothing about the others.
void require_single(SQLite::Database& db, const std::string& sql) {
  sqlite3_stmt* compiled = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v2(db.getHandle(), sql.c_str(), -1, &compiled, &tail);
  const bool nothing = code == SQLITE_OK && compiled == nullptr;
  sqlite3_finalize(compiled);
  if (nothing) throw Error("there is no SQL statement in '" + sql + "'");
  if (code != SQLITE_OK || tail == nullptr) return;  // reported when it is run
  const std::string rest = tail;
  if (std::all_of(rest.begin(), rest.end(),
                  [](unsigned char c) { return std::isspace(c) || c == ';'; }))
    return;
  throw Error("one SQL statement at a time; after the first there is '" + rest.substr(0, 60) + "'");
}

int past_deadline(void* deadline) {
  return monotonic_s() > *static_cast<const double*>(deadline) ? 1 : 0;
}

/// Stops the statements of a connection after a time; 0 = never.
class Deadline {
 public:
  Deadline(SQLite::Database& db, double timeout_s) : db_(db), at_(monotonic_s() + timeout_s) {
    if (timeout_s > 0) {
      sqlite3_progress_handler(db.getHandle(), kInstructionsPerCheck, past_deadline, &at_);
    }
  }
  ~Deadline() { sqlite3_progress_handler(db_.getHandle(), 0, nullptr, nullptr); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  SQLite::Database& db_;
  double at_;
};

}  // namespace

std::optional<int64_t> integer(const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  return std::nullopt;
}

std::optional<double> real(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto whole = integer(value)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<std::string> text(const Value& value) {
  if (const auto* string = std::get_if<std::string>(&value)) return *string;
  return std::nullopt;
}

const Value& Table::at(size_t row, std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  ASSAY_CHECK(found != columns.end(), "a query has no column '" + std::string(column) + "'");
  return rows.at(row)[static_cast<size_t>(found - columns.begin())];
}

std::vector<double> Table::reals(std::string_view column) const {
  std::vector<double> result;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (const auto value = real(at(row, column))) result.push_back(*value);
  }
  return result;
}

std::vector<int64_t> Table::integers(std::string_view column) const {
  std::vector<int64_t> result;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (const auto value = integer(at(row, column))) result.push_back(*value);
  }
  return result;
}

bool is_complete(const std::string& sql) { return sqlite3_complete(sql.c_str()) != 0; }

Table query(const Connection& connection, const std::string& sql, std::span<const Value> parameters,
            double timeout_s) {
  return connection.read([&](SQLite::Database& db) {
    require_single(db, sql);
    const Deadline deadline(db, timeout_s);
    SQLite::Statement s(db, sql);
    int index = 0;
    for (const Value& parameter : parameters) bind_field(s, ++index, parameter);
    Table table;
    for (int i = 0; i < s.getColumnCount(); ++i) table.columns.emplace_back(s.getColumnName(i));
    while (s.executeStep()) {
      auto& row = table.rows.emplace_back();
      for (int i = 0; i < s.getColumnCount(); ++i) row.push_back(value_of(s.getColumn(i)));
    }
    return table;
  });
}

}  // namespace assay::store
