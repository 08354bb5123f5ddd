// Loss curves of two recipes on a common axis: tokens, or seconds; never steps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace assay::evidence {

/// One train step of a run: the loss after so many tokens, the time since the run's first step.
struct CurvePoint {
  int64_t tokens_total = 0;
  double elapsed_s = 0;
  double loss = 0;
};
using Curve = std::vector<CurvePoint>;  ///< ascending in both

/// Loss at `at` on a curve, linear between points; nothing outside of what the curve covers.
std::optional<double> loss_at_tokens(std::span<const CurvePoint> curve, double tokens);
std::optional<double> loss_at_time(std::span<const CurvePoint> curve, double elapsed_s);

/// Losses of two runs where both have been: at the fewer tokens, at the shorter time.
struct Aligned {
  double at = 0;  ///< tokens, or seconds
  double base = 0, candidate = 0;
};
std::optional<Aligned> at_equal_tokens(std::span<const CurvePoint> base,
                                       std::span<const CurvePoint> candidate);
std::optional<Aligned> at_equal_time(std::span<const CurvePoint> base,
                                     std::span<const CurvePoint> candidate);

/// Tokens until the loss, averaged over `window` steps, first is at or below `target`; nothing for
/// a run that never gets there (infinity, not 0).
std::optional<double> tokens_to_target(std::span<const CurvePoint> curve, double target,
                                       int64_t window = 5);

/// Median over runs of candidate's tokens to target / median of baseline's; a miss is infinity.
/// Nothing when the baseline's median is a miss; infinite when only the candidate's is.
std::optional<double> tokens_to_target_ratio(std::span<const Curve> base,
                                             std::span<const Curve> candidate, double target,
                                             int64_t window = 5);

}  // namespace assay::evidence
