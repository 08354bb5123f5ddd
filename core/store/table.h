// Table: the rows of a query, with the types that SQLite stores.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace assay::store {

class Connection;

/// One field: NULL, INTEGER, REAL or TEXT, as stored.
using Value = std::variant<std::monostate, int64_t, double, std::string>;

std::optional<int64_t> integer(const Value& value);
std::optional<double> real(const Value& value);  ///< an INTEGER counts as its double
std::optional<std::string> text(const Value& value);

/// The rows of a query, in order.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;

  /// Throws std::logic_error for a column that the query does not have.
  const Value& at(size_t row, std::string_view column) const;
  std::vector<double> reals(std::string_view column) const;      ///< NULLs left out
  std::vector<int64_t> integers(std::string_view column) const;  ///< NULLs left out
  bool empty() const { return rows.empty(); }
};

/// True when `sql` ends with a whole statement (a semicolon outside texts and comments).
bool is_complete(const std::string& sql);

/// Runs one statement with `parameters` bound to ?1, ?2, ...; a longer run than `timeout_s` (0 = no
/// limit) throws Error, as does whatever SQLite refuses.
Table query(const Connection& connection, const std::string& sql, std::span<const Value> parameters,
            double timeout_s = 0);

}  // namespace assay::store
