// Paired t tests over seeds.
#include "core/evidence/seeds.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/statistics/bivariate_statistics.hpp>
#include <boost/math/statistics/univariate_statistics.hpp>
#include <cmath>
#include <numeric>

#include "core/evidence/power.h"

namespace assay::evidence {
namespace {

using StudentsT = boost::math::students_t_distribution<double>;

constexpr double kSameAlpha = 0.05, kRateAlpha = 0.05, kMarginShare = 0.01;
constexpr int64_t kFewestSeeds = 3;

/// The mean of paired differences with its standard error.
struct Paired {
  double mean = 0, sd = 0, error = 0;
  StudentsT t{1};

  explicit Paired(const std::vector<double>& d) {
    const auto n = static_cast<double>(d.size());
    mean = std::accumulate(d.begin(), d.end(), 0.0) / n;
    sd = sample_sd(d);
    error = sd / std::sqrt(n);
    if (d.size() > 1) t = StudentsT(n - 1);
  }
  /// P(T > (mean - at) / error); a vanishing error makes it certain.
  double above(double at) const {
    if (error == 0) return mean > at ? 0 : 1;
    return boost::math::cdf(boost::math::complement(t, (mean - at) / error));
  }
  double below(double at) const {
    if (error == 0) return mean < at ? 0 : 1;
    return boost::math::cdf(t, (mean - at) / error);
  }
  Interval interval(double alpha) const {
    const double half = boost::math::quantile(t, 1 - alpha) * error;
    return {.low = mean - half, .high = mean + half, .level = 1 - 2 * alpha};
  }
};

std::vector<double> differences(std::span<const SeedPair> seeds) {
  std::vector<double> d;
  for (const SeedPair& s : seeds) d.push_back(s.candidate - s.base);
  return d;
}

Verdict loss_verdict(std::span<const SeedPair> seeds, double margin) {
  return {.metric = "final_val_loss",
          .call = Call::not_shown,
          .scale = Verdict::Scale::difference,
          .unit = "nat",
          .n_used = static_cast<int64_t>(seeds.size()),
          .same_margin = margin,
          .method_id = "seed.tost.v1"};
}

void fill(Verdict& v, const Paired& paired, const std::vector<double>& d, double margin) {
  v.estimate = paired.mean;
  v.interval = paired.interval(kSameAlpha);
  v.p_greater = paired.above(0);
  v.p_less = paired.below(0);
  v.p_same = std::max(paired.above(-margin), paired.below(margin));
  v.sd = paired.sd;
  v.sd_robust = robust_sd(d);
  v.mde = detectable(paired.sd, v.n_used, kSameAlpha / 2, 0).test;
}

void plan_more(Verdict& v, double sd, double margin) {
  if (v.call != Call::not_shown) return;
  const auto needed = seeds_needed(sd, margin);
  if (needed) v.more = std::max<int64_t>(*needed - v.n_used, 1);
}

}  // namespace

Verdict judge_parity(std::span<const SeedPair> seeds, double margin) {
  Verdict v = loss_verdict(seeds, margin);
  const std::vector<double> d = differences(seeds);
  if (v.n_used < kFewestSeeds) {
    v.reason = "too_few";
    v.more = kFewestSeeds - v.n_used;
    if (!d.empty()) v.estimate = Paired(d).mean;
    return v;
  }
  const Paired paired(d);
  fill(v, paired, d, margin);
  if (*v.p_same <= kSameAlpha) {
    v.call = Call::parity;
  } else if (v.interval->low > margin || v.interval->high < -margin) {
    v.call = Call::no_parity;
  } else {
    v.reason = "margin";
  }
  plan_more(v, paired.sd, margin);
  return v;
}

Verdict judge_seeds(std::span<const SeedPair> seeds, double margin, double alpha) {
  Verdict v = judge_parity(seeds, margin);
  v.method_id = "seed.t.v1";
  if (v.n_used < kFewestSeeds || v.call == Call::parity) return v;
  const bool significant = std::min(*v.p_greater, *v.p_less) < alpha;
  const double size = std::abs(*v.estimate);
  v.call = Call::not_shown;
  if (significant && size > margin && size >= *v.mde) {
    v.call = *v.estimate < 0 ? Call::better : Call::worse;
    v.reason.clear();
    v.more.reset();
  } else {
    v.reason = !significant ? "not_significant" : size > margin ? "below_mde" : "margin";
  }
  return v;
}

std::optional<double> correlation(std::span<const SeedPair> seeds) {
  if (seeds.size() < static_cast<size_t>(kFewestSeeds)) return std::nullopt;
  std::vector<double> a, b;
  for (const SeedPair& s : seeds) {
    a.push_back(s.base);
    b.push_back(s.candidate);
  }
  if (sample_sd(a) == 0 || sample_sd(b) == 0) return std::nullopt;
  return boost::math::statistics::correlation_coefficient(a, b);
}

double win_share(std::span<const SeedPair> seeds) {
  double wins = 0;
  for (const SeedPair& s : seeds) {
    wins += s.candidate < s.base ? 1 : s.candidate == s.base ? 0.5 : 0;
  }
  return seeds.empty() ? 0.5 : wins / static_cast<double>(seeds.size());
}

std::optional<double> exchange_rate(const ScheduleLosses& losses) {
  const size_t n = losses.full.size();
  if (n < static_cast<size_t>(kFewestSeeds) || losses.shortened.size() != n) return std::nullopt;
  std::vector<double> d;
  for (size_t i = 0; i < n; ++i) d.push_back(losses.shortened[i] - losses.full[i]);
  const Paired paired(d);
  if (paired.mean <= 0 || paired.above(0) >= kRateAlpha) return std::nullopt;
  return paired.mean / (losses.full_steps - losses.short_steps);
}

double auto_margin(double nats_per_step, double steps) {
  return kMarginShare * steps * nats_per_step;
}

}  // namespace assay::evidence
