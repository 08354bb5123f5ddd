// The exact signed-rank test of paired differences, its estimate and its interval (pair.sr.v1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/evidence/verdict.h"

namespace assay::evidence {

/// Wilcoxon's signed-rank statistic with its exact null distribution, also with ties.
///
///   d = 0 is dropped; |d| gets mid-ranks, doubled to integers r_i;  W+ = sum of r_i, d_i > 0, / 2
///   P(sum = s) by dynamic programming over the 2^n sign patterns: c[s] += c[s - r]
///   p_greater = P(W >= W+),  p_less = P(W <= W+)
///
/// Exact in doubles to n = 53 and to rounding beyond. Wilcoxon 1945, Biometrics Bulletin 1(6).
struct SignedRank {
  int64_t n = 0;  ///< differences other than 0
  double w_plus = 0;
  double p_greater = 1, p_less = 1;
};

SignedRank signed_rank(std::span<const double> differences);

/// The same for d + shift: what the two one-sided tests of equivalence need.
SignedRank signed_rank(std::span<const double> differences, double shift);

/// Median of the n(n+1)/2 Walsh averages (d_i + d_j)/2, i <= j, zeros included; Hodges and Lehmann
/// 1963. Needs at least one difference.
double hodges_lehmann(std::span<const double> differences);

/// With alpha on either side: [w_(k), w_(M+1-k)] of the M sorted Walsh averages,
/// k = 1 + max{x : P(W+ <= x) <= alpha} over the null without ties. Its level is the achieved one.
/// Nothing if n is too small for any such x.
std::optional<Interval> signed_rank_interval(std::span<const double> differences, double alpha);

}  // namespace assay::evidence
