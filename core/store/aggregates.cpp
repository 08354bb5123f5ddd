// median(x) and p10(x) as SQLite aggregates: values are collected, then core/store/quantile.h.
#include "core/store/aggregates.h"

#include <SQLiteCpp/Database.h>
#include <sqlite3.h>

#include <memory>
#include <vector>

#include "core/store/quantile.h"

namespace assay::store {
namespace {

/// SQLite gives each group a zeroed block; it holds the address of the group's values.
std::vector<double>** slot(sqlite3_context* context, int bytes) {
  return static_cast<std::vector<double>**>(sqlite3_aggregate_context(context, bytes));
}

void step(sqlite3_context* context, int, sqlite3_value** arguments) {
  auto** values = slot(context, sizeof(void*));
  if (values == nullptr) return sqlite3_result_error_nomem(context);
  if (*values == nullptr) *values = std::make_unique<std::vector<double>>().release();
  if (sqlite3_value_type(arguments[0]) == SQLITE_NULL) return;
  (*values)->push_back(sqlite3_value_double(arguments[0]));
}

void finish(sqlite3_context* context) {
  auto** stored = slot(context, 0);
  const std::unique_ptr<std::vector<double>> values(stored == nullptr ? nullptr : *stored);
  if (!values || values->empty()) return sqlite3_result_null(context);
  const double q = *static_cast<const double*>(sqlite3_user_data(context));
  sqlite3_result_double(context, *quantile(std::move(*values), q));
}

}  // namespace

void add_aggregates(SQLite::Database& db) {
  static double median = 0.5;
  static double p10 = 0.1;
  db.createFunction("median", 1, true, &median, nullptr, step, finish);
  db.createFunction("p10", 1, true, &p10, nullptr, step, finish);
}

}  // namespace assay::store
