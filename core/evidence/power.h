// Power: the smallest effect that so many pairs find, and the pairs that an answer needs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace assay::evidence {

/// 1.4826 MAD: the standard deviation of normal data, unmoved by a few wild pairs. Needs a value.
double robust_sd(std::span<const double> values);
/// Sample standard deviation; 0 for one value.
double sample_sd(std::span<const double> values);

/// mde.v1, 80 % power, t of n - 1 degrees of freedom, s = robust_sd:
///
///   test = (t_(1-alpha) + t_.8) s / sqrt n
///   rule = max(test, ln(1 + min_effect) + t_.8 s / sqrt n)     the estimate must exceed the
///   minimum
struct Detectable {
  double test = 0, rule = 0;
};

/// n >= 2.
Detectable detectable(double s, int64_t n, double alpha, double min_effect);

struct PairTarget {
  double alpha = 0.0025, min_effect = 0.01, same_margin = 0.01;
};

/// The smallest even count of pairs with 80 % power to call an effect that is as large as
/// `estimate` with scatter `s`: FASTER or SLOWER above the minimum effect, SAME (90 %, both sides
/// at 5 %) below the margin. Nothing if 1,000 do not suffice: the effect lies at the limit itself.
std::optional<int64_t> pairs_needed(double estimate, double s, const PairTarget& target);

/// The smallest n with (t_.95 + t_.9) sd_of_differences / sqrt n <= margin, t of n - 1: seeds for a
/// parity of recipes without a difference. Nothing above 10,000.
std::optional<int64_t> seeds_needed(double sd_of_differences, double margin);

/// The smallest difference of two recipes that n seeds each find, unpaired:
/// (t_.975 + t_.8) sd sqrt(2 / n), 2n - 2 degrees of freedom. n >= 2.
double detectable_by_seeds(double sd, int64_t n);

}  // namespace assay::evidence
