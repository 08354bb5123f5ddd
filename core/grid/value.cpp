// Conversions, equality and printing of values.
#include "core/grid/value.h"

#include <nlohmann/json.hpp>

namespace assay::grid {
namespace {

/// A number of either kind as a double; nothing for other values.
const double* as_real(const Value& value, double& storage) {
  if (const auto* real = get_if<double>(value)) return real;
  if (const auto* whole = get_if<int64_t>(value)) {
    storage = static_cast<double>(*whole);
    return &storage;
  }
  return nullptr;
}

bool equal_lists(const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace

Value to_value(const OptionValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  if (const auto* i = std::get_if<int64_t>(&value)) return *i;
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  std::vector<Value> list;
  for (const std::string& item : std::get<std::vector<std::string>>(value)) list.emplace_back(item);
  return list;
}

std::string print(const Value& value) {
  if (const auto* b = get_if<bool>(value)) return *b ? "true" : "false";
  if (const auto* i = get_if<int64_t>(value)) return std::to_string(*i);
  if (const auto* d = get_if<double>(value)) return nlohmann::json(*d).dump();
  if (const auto* s = get_if<std::string>(value)) return "'" + *s + "'";
  const auto* list = get_if<std::vector<Value>>(value);
  if (!list) return "undefined";
  std::string text;
  for (const Value& item : *list) text += (text.empty() ? "" : ", ") + print(item);
  return "[" + text + "]";
}

bool equal(const Value& a, const Value& b) {
  if (is_undefined(a) || is_undefined(b)) return false;
  if (const auto* i = get_if<int64_t>(a), *j = get_if<int64_t>(b); i && j) return *i == *j;
  double left = 0, right = 0;
  if (const auto* x = as_real(a, left), *y = as_real(b, right); x && y) return *x == *y;
  if (a.index() != b.index()) return false;
  if (const auto* list = get_if<std::vector<Value>>(a)) {
    return equal_lists(*list, *get_if<std::vector<Value>>(b));
  }
  return a.base() == b.base();
}

std::string to_json(const OptionValue& value) {
  return std::visit(
      [](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>) {
          return nlohmann::json(v == 0 ? 0.0 : v).dump();
        } else {
          return nlohmann::json(v).dump();
        }
      },
      value);
}

}  // namespace assay::grid
