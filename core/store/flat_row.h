// FlatRow: a spool row of scalars, read straight from its text and reused from row to row, so that
// an import makes no tree of nodes for each of its rows. Private to core/store.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace assay::store {

struct FlatValue {
  enum class Kind { null, boolean, integer, real, text };
  std::string key{};
  Kind kind = Kind::null;
  int64_t integer = 0;  ///< also 0 or 1 of a boolean
  double real = 0;      ///< also of an integer
  std::string text{};

  nlohmann::json json() const;  ///< for messages
};

class FlatRow {
 public:
  /// False if `text` is no JSON object or has a value that is no scalar.
  bool parse(std::string_view text);
  bool assign(const nlohmann::json& row);

  size_t size() const { return size_; }
  const FlatValue& operator[](size_t i) const { return values_[i]; }
  /// The text under "t": which table the row is for; empty if there is none.
  std::string_view table() const;

 private:
  friend class FlatRowReader;
  FlatValue& next();

  std::vector<FlatValue> values_;  ///< the first size_ are this row's; the others keep their memory
  size_t size_ = 0;
};

}  // namespace assay::store
