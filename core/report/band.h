// The band around a mean curve that holds the whole true curve at once.
#pragma once

#include <vector>

#include "core/report/svg.h"

namespace assay::report {

/// Half widths of the 95 % simultaneous band of a mean over seeds, by point. B = 2000 resamples of
/// whole seeds give mean*_b and, with se_k the standard error at point k,
///
///   T_b = max over k of |mean*_b,k - mean_k| / se_k;   half width_k = q95(T) se_k
///
/// The resamples come from a fixed seed: the same runs give the same band. Points of equal losses
/// (se 0) have width 0. Needs two curves or more; they count as far as all of them go.
std::vector<double> simultaneous_band(const std::vector<std::vector<Point>>& seeds);

}  // namespace assay::report
