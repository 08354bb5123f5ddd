// steady_v1: which steps of a run are past its start and may be compared.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace assay::evidence {

enum class SteadyOutcome { found, not_found, too_short };

struct Steady {
  SteadyOutcome outcome = SteadyOutcome::too_short;
  int64_t first = 0;       ///< 1-based index of the first used step
  int64_t last = 0;        ///< N
  double reference_s = 0;  ///< median of the last half
  double tolerance_s = 0;
  bool drift = false;  ///< the last third is faster or slower than the first

  /// "steady_v1", then what a reader must know: " unsteady", " drift", " too_short".
  std::string method() const;
};

/// Steady state of train steps x_1..x_N (seconds, per-step maximum over ranks), w warm-up steps:
///
///   N < w + 15 -> too_short: first = w + 1, as good as nothing is known about the start
///   ref = median of the last floor(N/2);  h = max(5, floor(N/10))
///   e(y) = 1.4826 median |y_(k+1) - y_k| / sqrt 2     differences: a trend is no noise
///   tol = max(1 % ref, 3 * 1.2533 e(last half) / sqrt h)
///   first = smallest s in w+1..floor(N/2)+1 whose windows of h steps at s, s + floor(h/2), s + h
///           all have |median - ref| <= tol;  none -> not_found, first = N - floor(N/2) + 1
///   drift: |median(last third) / median(first third) - 1| of the used part
///          > max(2 %, 3 * 1.2533 sqrt 2 e / (sqrt t ref)), t = steps of a third
///
/// Nothing if no step is left after the warm-up.
std::optional<Steady> find_steady(std::span<const double> step_s, int64_t warmup_steps);

}  // namespace assay::evidence
