// The type-7 quantile (step.q7.v1): the one definition behind every p10, p50, p90 and median.
#pragma once

#include <optional>
#include <vector>

namespace assay::store {

/// h = (n - 1) q;  x[floor h] + (h - floor h) (x[floor h + 1] - x[floor h]) over sorted x; q in
/// [0, 1]. Nothing for no values. As R's default (type 7) and numpy's "linear".
std::optional<double> quantile(std::vector<double> values, double q);

}  // namespace assay::store
