// steady_v1, line by line as steady.h states it.
#include "core/evidence/steady.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/store/quantile.h"

namespace assay::evidence {
namespace {

constexpr int64_t kShortest = 15;     // steps behind the warm-up
constexpr double kMadToSd = 1.4826;   // of a normal distribution
constexpr double kMedianSd = 1.2533;  // sd of a median of n, in sd/sqrt n: sqrt(pi/2)
constexpr double kSigmas = 3;
constexpr double kToleranceShare = 0.01;  // 1 % of ref
constexpr double kDriftShare = 0.02;

using Steps = std::span<const double>;

double median(Steps steps) { return *store::quantile({steps.begin(), steps.end()}, 0.5); }

double noise(Steps steps) {
  std::vector<double> differences;
  for (size_t k = 1; k < steps.size(); ++k) {
    differences.push_back(std::abs(steps[k] - steps[k - 1]));
  }
  return differences.empty() ? 0 : kMadToSd * median(differences) / std::sqrt(2.0);
}

/// Windows of h steps at s, s + h/2 and s + h (1-based) all have a median near ref.
bool settled_at(Steps steps, int64_t s, int64_t h, const Steady& steady) {
  for (const int64_t start : {s, s + h / 2, s + h}) {
    const auto begin = static_cast<size_t>(start - 1);
    const auto length = static_cast<size_t>(h);
    if (begin + length > steps.size()) return false;
    if (std::abs(median(steps.subspan(begin, length)) - steady.reference_s) > steady.tolerance_s) {
      return false;
    }
  }
  return true;
}

bool drifts(Steps used, double reference_s) {
  const size_t third = used.size() / 3;
  if (third == 0) return false;
  const double change = median(used.last(third)) / median(used.first(third)) - 1;
  const double t = std::sqrt(static_cast<double>(third));
  const double chance = kSigmas * kMedianSd * std::sqrt(2.0) * noise(used) / (t * reference_s);
  return std::abs(change) > std::max(kDriftShare, chance);
}

}  // namespace

std::string Steady::method() const {
  std::string text = "steady_v1";
  if (outcome == SteadyOutcome::too_short) text += " too_short";
  if (outcome == SteadyOutcome::not_found) text += " unsteady";
  if (drift) text += " drift";
  return text;
}

std::optional<Steady> find_steady(Steps steps, int64_t warmup_steps) {
  const auto n = static_cast<int64_t>(steps.size());
  if (n <= warmup_steps) return std::nullopt;
  Steady steady{.first = warmup_steps + 1, .last = n};
  if (n < warmup_steps + kShortest) return steady;
  const Steps half = steps.last(static_cast<size_t>(n / 2));
  const int64_t h = std::max<int64_t>(5, n / 10);
  steady.reference_s = median(half);
  steady.tolerance_s =
      std::max(kToleranceShare * steady.reference_s,
               kSigmas * kMedianSd * noise(half) / std::sqrt(static_cast<double>(h)));
  steady.outcome = SteadyOutcome::not_found;
  steady.first = n - n / 2 + 1;
  for (int64_t s = warmup_steps + 1; s <= n / 2 + 1; ++s) {
    if (!settled_at(steps, s, h, steady)) continue;
    steady.outcome = SteadyOutcome::found;
    steady.first = s;
    break;
  }
  steady.drift = drifts(steps.subspan(static_cast<size_t>(steady.first - 1)), steady.reference_s);
  return steady;
}

}  // namespace assay::evidence
