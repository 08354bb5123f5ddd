// Figure: how a double is stored. SQLite turns NaN into NULL without a word, so it is named beside.
#pragma once

#include <cmath>
#include <optional>
#include <string>

namespace assay::store {

struct Figure {
  std::optional<double> value{};           ///< finite, or nothing
  std::optional<std::string> nonfinite{};  ///< "nan", "inf", "-inf"
};

inline Figure split(double value) {
  if (std::isfinite(value)) return {.value = value};
  if (std::isnan(value)) return {.nonfinite = "nan"};
  return {.nonfinite = value > 0 ? "inf" : "-inf"};
}

}  // namespace assay::store
