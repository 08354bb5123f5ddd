// The type-7 quantile, line by line as quantile.h states it.
#include "core/store/quantile.h"

#include <algorithm>
#include <cmath>

namespace assay::store {

std::optional<double> quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const double h = static_cast<double>(values.size() - 1) * q;
  const auto low = static_cast<size_t>(std::floor(h));
  if (low + 1 == values.size()) return values[low];
  return values[low] + (h - std::floor(h)) * (values[low + 1] - values[low]);
}

}  // namespace assay::store
