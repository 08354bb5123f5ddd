// Value: what an expression computes with: undefined, bool, whole number, number, text or list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "assay/options.h"

namespace assay::grid {

/// The monostate is "undefined": a key that a cell does not have. It equals nothing, orders with
/// nothing and is false.
struct Value
    : std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<Value>> {
  using variant::variant;
  const variant& base() const { return *this; }
};

template <class T>
const T* get_if(const Value& value) {
  return std::get_if<T>(&value.base());
}

inline bool is_undefined(const Value& value) { return value.index() == 0; }

Value to_value(const OptionValue& value);

/// As an expression spells it: 64, 'text', [1, 2], true.
std::string print(const Value& value);

bool equal(const Value& a, const Value& b);

/// The canonical JSON of one value: nlohmann's dump, -0.0 as 0.0.
std::string to_json(const OptionValue& value);

}  // namespace assay::grid
