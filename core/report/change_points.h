// Change points: where a series of figures moved for good.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace assay::report {

struct ChangeRule {
  double alpha = 0.01;       ///< of the permutation test, per split
  double min_effect = 0.01;  ///< share by which the medians must differ
  size_t shortest = 3;       ///< values on either side of a change
  int permutations = 999;
};

struct ChangePoint {
  size_t index = 0;              ///< of the first value behind the change
  double before = 0, after = 0;  ///< medians of the segments on both sides
  double p = 1;                  ///< of the permutation test
  double change() const { return after / before - 1; }
};

/// E-Divisive with medians as effect (Matteson and James 2014, J. Am. Stat. Assoc. 109, eq. 5-7;
/// alpha = 1). A segment x_1..x_n is split where
///
///   q(m) = m k / (m + k) * (2 / (m k) sum |x_i - y_j| - sum_(i<l) |x_i - x_l| / C(m, 2)
///                           - sum_(j<l) |y_j - y_l| / C(k, 2)),   k = n - m
///
/// is largest, if fewer than alpha of random orders of the segment reach that value and the medians
/// differ by min_effect; both parts are then split again. Orders come from a fixed seed. With fewer
/// than 2 x `shortest` values there is no change to be found; a p below .01 needs about 10 values.
std::vector<ChangePoint> change_points(std::span<const double> values, const ChangeRule& rule = {});

}  // namespace assay::report
