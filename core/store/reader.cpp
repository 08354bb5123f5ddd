// Reader: queries, their values, and the lookup of studies by name.
#include "core/store/reader.h"

#include <sqlite3.h>

#include <algorithm>
#include <cctype>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/nearest.h"
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

constexpr const char* kStudies =
    "SELECT study_id, name, created_us, (SELECT count(*) FROM study_cells c WHERE"
    " c.study_id=s.study_id) cells, yaml_sha256, resolved_json, nuisance_json FROM studies s"
    " WHERE study_id=(SELECT study_id FROM studies t WHERE t.name=s.name"
    "  ORDER BY created_us DESC, study_id DESC LIMIT 1) ORDER BY created_us DESC, study_id DESC";

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

Reader::Reader(const std::filesystem::path& file)
    : file_(file), connection_(std::make_unique<Connection>(Connection::reader(file))) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

Table Reader::query(const std::string& sql, std::span<const Value> parameters) const {
  return connection_->read([&](SQLite::Database& db) {
    require_single(db, sql);
    double deadline = monotonic_s() + timeout_s_;
    sqlite3_progress_handler(db.getHandle(), timeout_s_ > 0 ? kInstructionsPerCheck : 0,
                             past_deadline, &deadline);
    SQLite::Statement s(db, sql);
    int index = 0;
    for (const Value& parameter : parameters) bind_field(s, ++index, parameter);
    Table table;
    for (int i = 0; i < s.getColumnCount(); ++i) table.columns.emplace_back(s.getColumnName(i));
    while (s.executeStep()) {
      auto& row = table.rows.emplace_back();
      for (int i = 0; i < s.getColumnCount(); ++i) row.push_back(value_of(s.getColumn(i)));
    }
    sqlite3_progress_handler(db.getHandle(), 0, nullptr, nullptr);
    return table;
  });
}

Table Reader::query(const std::string& sql, std::initializer_list<Value> parameters) const {
  return query(sql, std::span<const Value>(parameters.begin(), parameters.size()));
}

void Reader::set_timeout(double seconds) { timeout_s_ = seconds; }

std::vector<StudyInfo> Reader::studies() const {
  const Table table = query(kStudies);
  std::vector<StudyInfo> result;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    result.push_back({.study_id = *integer(table.at(i, "study_id")),
                      .name = *text(table.at(i, "name")),
                      .created_us = *integer(table.at(i, "created_us")),
                      .cells = *integer(table.at(i, "cells")),
                      .yaml_sha256 = *text(table.at(i, "yaml_sha256")),
                      .resolved_json = *text(table.at(i, "resolved_json")),
                      .nuisance_json = *text(table.at(i, "nuisance_json"))});
  }
  return result;
}

StudyInfo Reader::study(const std::string& name) const {
  std::vector<std::string> names;
  for (StudyInfo& study : studies()) {
    if (study.name == name) return study;
    names.push_back(study.name);
  }
  if (names.empty()) return newest_study();  // throws: no study at all
  const std::vector<std::string> near = nearest(name, names);
  std::string known;
  for (const std::string& other : names) known += (known.empty() ? "'" : ", '") + other + "'";
  throw Error("there is no study '" + name + "' in '" + file_.string() + "'",
              near.empty() ? "studies there: " + known : did_you_mean(near));
}

StudyInfo Reader::newest_study() const {
  std::vector<StudyInfo> all = studies();
  if (!all.empty()) return std::move(all.front());
  throw Error("the results database '" + file_.string() + "' holds no study yet",
              "start one: assay run STUDY.yaml");
}

}  // namespace assay::store
