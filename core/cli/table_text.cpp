// Query results as text.
#include "core/cli/table_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/report/csv_field.h"

namespace assay::cli {
namespace {

using store::integer;
using store::real;
using store::Table;
using store::text;
using store::Value;

std::string field(const Value& value) {
  if (const auto number = integer(value)) return std::to_string(*number);
  if (const auto number = real(value)) return fmt::format("{}", *number);
  return text(value).value_or("");
}

std::string line(const std::vector<std::string>& fields, const std::vector<size_t>& widths,
                 const std::vector<bool>& right) {
  std::string out;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string pad(widths[i] - fields[i].size(), ' ');
    out += (i == 0 ? "" : "  ") + (right[i] ? pad + fields[i] : fields[i] + pad);
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out + "\n";
}

}  // namespace

std::string table_text(const Table& table) {
  const size_t n = table.columns.size();
  std::vector<size_t> widths(n);
  std::vector<bool> right(n, !table.rows.empty());
  for (size_t i = 0; i < n; ++i) {
    widths[i] = table.columns[i].size();
    for (const auto& row : table.rows) {
      widths[i] = std::max(widths[i], field(row[i]).size());
      if (text(row[i])) right[i] = false;
    }
  }
  std::vector<std::string> rule;
  for (const size_t width : widths) rule.emplace_back(width, '-');
  std::string out = line(table.columns, widths, right) + line(rule, widths, right);
  for (const auto& row : table.rows) {
    std::vector<std::string> fields;
    for (const Value& value : row) fields.push_back(field(value));
    out += line(fields, widths, right);
  }
  return out;
}

std::string table_csv(const Table& table) {
  std::string out = report::csv_line(table.columns);
  for (const auto& row : table.rows) {
    std::vector<std::string> fields;
    for (const Value& value : row) fields.push_back(field(value));
    out += report::csv_line(fields);
  }
  return out;
}

nlohmann::json table_json(const Table& table) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& row : table.rows) {
    nlohmann::json fields = nlohmann::json::array();
    for (const Value& value : row) {
      if (const auto number = integer(value))
        fields.push_back(*number);
      else if (const auto number = real(value))
        fields.push_back(*number);
      else if (const auto words = text(value))
        fields.push_back(*words);
      else
        fields.push_back(nullptr);
    }
    rows.push_back(std::move(fields));
  }
  return {{"schema_version", 1}, {"columns", table.columns}, {"rows", std::move(rows)}};
}

}  // namespace assay::cli
