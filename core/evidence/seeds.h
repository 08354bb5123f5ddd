// Losses of paired seeds: equivalence with a margin (parity), and a winner with its uncertainty.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/evidence/verdict.h"

namespace assay::evidence {

/// Losses of one seed under both recipes (same initial weights, same data), nats.
struct SeedPair {
  int64_t seed = 0;
  double base = 0, candidate = 0;
};

/// seed.tost.v1: parity of final losses. d_i = candidate - base, df = n - 1:
///
///   t_lo = (mean + m) / (s / sqrt n),  t_hi = (mean - m) / (s / sqrt n)
///   p = max(P(T > t_lo), P(T < t_hi));  PARITY iff p <= .05, NO_PARITY iff the 90 % interval lies
///   wholly outside +-m, else NOT_SHOWN; n < 3 is NOT_SHOWN(too_few), never "equal"
///
/// Schuirmann 1987, J. Pharmacokinet. Biopharm. 15. `margin` in nats, > 0.
Verdict judge_parity(std::span<const SeedPair> seeds, double margin);

/// seed.t.v1: recipes that should differ. BETTER (lower loss) or WORSE need p < alpha of the paired
/// t test, |mean| > margin and |mean| >= the detectable difference; PARITY as above; else
/// NOT_SHOWN.
Verdict judge_seeds(std::span<const SeedPair> seeds, double margin, double alpha = 0.0025);

/// Correlation of the two recipes over seeds; nothing for fewer than 3 or constant losses.
std::optional<double> correlation(std::span<const SeedPair> seeds);

/// P(A > B): share of seeds in which the candidate has the lower loss, ties half.
double win_share(std::span<const SeedPair> seeds);

/// Losses of one recipe after its whole schedules of S steps and of fewer, by seed.
struct ScheduleLosses {
  double full_steps = 0, short_steps = 0;
  std::vector<double> full{}, shortened{};  ///< by seed, equal lengths
};

/// What one step is worth, nats: r = (mean L_short - mean L_full) / (S - S_short). Nothing unless
/// there are 3 seeds and r > 0 at p < .05 (paired, one-sided).
std::optional<double> exchange_rate(const ScheduleLosses& losses);

/// 1 % of the steps in nats: the margin `auto`.
double auto_margin(double nats_per_step, double steps);

}  // namespace assay::evidence
