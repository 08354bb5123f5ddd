// Judging pairs, as pair_test.h states it.
#include "core/evidence/pair_test.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <numeric>

#include "core/evidence/power.h"
#include "core/evidence/signed_rank.h"

namespace assay::evidence {
namespace {

constexpr double kControlAlpha = 0.005;

bool failed(const Verdict* control) {
  return control && (control->call == Call::faster || control->call == Call::slower);
}

void fill_figures(Verdict& v, std::span<const double> d, const PairRule& rule) {
  const SignedRank test = signed_rank(d);
  const double m = std::log1p(rule.same_margin);
  v.estimate = hodges_lehmann(d);
  v.interval = signed_rank_interval(d, rule.alpha);
  v.p_greater = test.p_greater;
  v.p_less = test.p_less;
  v.p_same = std::max(signed_rank(d, m).p_greater, signed_rank(d, -m).p_less);
  v.sd = sample_sd(d);
  v.sd_robust = robust_sd(d);
  if (d.size() > 1) v.mde = detectable(*v.sd_robust, v.n_used, rule.alpha, rule.min_effect).rule;
}

void decide(Verdict& v, const PairRule& rule, const Verdict* control) {
  const double effect = std::log1p(rule.min_effect), size = std::abs(*v.estimate);
  const bool significant = *v.p_greater < rule.alpha || *v.p_less < rule.alpha;
  const bool shown = size > effect && (!rule.above_mde || size > *v.mde);
  if (failed(control)) {
    v.call = Call::invalid;
    v.reason = "control";
  } else if (v.n_used < rule.minimum) {
    v.reason = "too_few";
  } else if (significant && shown) {
    v.call = *v.estimate > 0 ? Call::slower : Call::faster;
    if (size < *v.mde) v.labels.push_back("below_mde");
  } else if (*v.p_same <= rule.same_alpha) {
    v.call = Call::same;
    if (significant) v.labels.push_back("below_minimum");
  } else {
    v.reason = significant ? (size > effect ? "below_mde" : "below_minimum") : "not_significant";
  }
}

void plan_more(Verdict& v, const PairRule& rule) {
  if (v.call != Call::unresolved || v.n_used < 2) return;
  const auto needed = pairs_needed(
      *v.estimate, *v.sd_robust,
      {.alpha = rule.alpha, .min_effect = rule.min_effect, .same_margin = rule.same_margin});
  if (needed) v.more = std::max(std::max(*needed, rule.minimum) - v.n_used, int64_t{2});
}

}  // namespace

int64_t minimum_pairs(double alpha) { return alpha >= kControlAlpha ? 8 : 10; }

PairRule control_rule(const PairRule& rule) {
  PairRule control = rule;
  control.alpha = kControlAlpha;
  control.minimum = minimum_pairs(kControlAlpha);
  control.above_mde = false;
  return control;
}

Verdict judge_pairs(std::span<const double> d, const PairRule& rule, const Verdict* control) {
  Verdict v{.metric = "step_time",
            .n_used = static_cast<int64_t>(d.size()),
            .min_effect = rule.min_effect,
            .same_margin = rule.same_margin,
            .method_id = "pair.sr.v1"};
  if (control) v.control = name_of(control->call);
  if (d.empty()) {
    v.reason = "too_few";
    return v;
  }
  fill_figures(v, d, rule);
  decide(v, rule, control);
  plan_more(v, rule);
  return v;
}

double order_p(int64_t second_slower, int64_t pairs) {
  if (pairs <= 0) return 1;
  const boost::math::binomial_distribution<double> fair(static_cast<double>(pairs), 0.5);
  const int64_t fewer = std::min(second_slower, pairs - second_slower);
  return std::min(1.0, 2 * boost::math::cdf(fair, static_cast<double>(fewer)));
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double least = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(p.size() - i);
    least = std::max(least, std::min(1.0, left * p[order[i]]));
    adjusted[order[i]] = least;
  }
  return adjusted;
}

Call two_stages(Call first, std::optional<Call> second) {
  if (first == Call::invalid || (second && *second == Call::invalid)) return Call::invalid;
  if (first != Call::faster && first != Call::slower) return first;
  return second == first ? first : Call::unresolved;
}

}  // namespace assay::evidence
