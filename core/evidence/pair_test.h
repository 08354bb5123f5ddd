// The verdict on time: paired log-ratios in, FASTER, SLOWER, SAME or UNRESOLVED out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/evidence/verdict.h"

namespace assay::evidence {

/// What counts as an answer. Effects are shares: 0.01 = 1 %.
struct PairRule {
  double alpha = 0.0025;      ///< per side
  double min_effect = 0.01;   ///< an estimate must exceed it for FASTER or SLOWER
  double same_margin = 0.01;  ///< SAME: the 90 % interval lies within +- this
  double same_alpha = 0.05;   ///< of each of the two one-sided tests
  int64_t minimum = 10;       ///< pairs; 8 where alpha is .005
  bool above_mde = false;  ///< gate: FASTER and SLOWER also need |estimate| > the detectable effect
};

/// Rule of A/A controls: alpha .005, because 8 pairs cannot reach .0025.
PairRule control_rule(const PairRule& rule);

/// Smallest count of pairs of which one sided p can reach alpha: 8 for .005, 10 for .0025.
int64_t minimum_pairs(double alpha);

/// d = ln(t_candidate / t_baseline), one per used pair, in run order. First that applies:
/// control was FASTER or SLOWER -> INVALID(control); n < minimum -> UNRESOLVED(too_few);
/// p < alpha and |HL| > ln(1 + min_effect) -> SLOWER or FASTER;
/// p_same = max(p_greater(d + m), p_less(d - m)) <= .05, m = ln(1 + same_margin) -> SAME;
/// else UNRESOLVED(below_minimum) when significant, (not_significant) when not.
/// Labels: below_mde (a winner smaller than the detectable effect: its size is probably
/// overstated), below_minimum (SAME, yet significant), no_control.
Verdict judge_pairs(std::span<const double> d, const PairRule& rule,
                    const Verdict* control = nullptr);

/// Two-sided binomial test that the second run of a pair is as often the slower one as the first.
/// Ties (equal times) are left out; 1 when nothing is left.
double order_p(int64_t second_slower, int64_t pairs);
inline constexpr double kOrderAlpha = 0.001;

/// Holm's step-down adjustment, in the order given:
/// adj_(j) = max over i <= j of min(1, (K - i + 1) p_(i)). Holm 1979, Scand. J. Stat. 6.
std::vector<double> holm(std::span<const double> p);

/// Two stages of the gate: both must have the same call; stage 2 alone is the figure.
Call two_stages(Call first, std::optional<Call> second);

}  // namespace assay::evidence
