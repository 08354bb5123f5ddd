// Student's t does the work; searches are linear, as counts are small.
#include "core/evidence/power.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/statistics/univariate_statistics.hpp>
#include <cmath>
#include <vector>

namespace assay::evidence {
namespace {

constexpr double kPower = 0.8, kSamePower = 0.9, kSameAlpha = 0.05, kTwoSided = 0.975;
constexpr double kMadToSd = 1.4826;
constexpr int64_t kMostPairs = 1000, kMostSeeds = 10'000;

double t(double p, int64_t degrees) {
  return boost::math::quantile(
      boost::math::students_t_distribution<double>(static_cast<double>(degrees)), p);
}

double root(int64_t n) { return std::sqrt(static_cast<double>(n)); }

double same_width(double s, int64_t n) {
  return (t(1 - kSameAlpha, n - 1) + t(kSamePower, n - 1)) * s / root(n);
}

}  // namespace

double robust_sd(std::span<const double> values) {
  // The library's median reorders its input; its median_absolute_deviation is wrong for even counts
  // (Boost 1.74).
  std::vector<double> copy(values.begin(), values.end());
  const double center = boost::math::statistics::median(copy);
  for (double& x : copy) x = std::abs(x - center);
  return kMadToSd * boost::math::statistics::median(copy);
}

double sample_sd(std::span<const double> values) {
  if (values.size() < 2) return 0;
  return std::sqrt(boost::math::statistics::sample_variance(values.begin(), values.end()));
}

Detectable detectable(double s, int64_t n, double alpha, double min_effect) {
  const double power_part = t(kPower, n - 1) * s / root(n);
  const double test = t(1 - alpha, n - 1) * s / root(n) + power_part;
  return {.test = test, .rule = std::max(test, std::log1p(min_effect) + power_part)};
}

std::optional<int64_t> pairs_needed(double estimate, double s, const PairTarget& target) {
  const double size = std::abs(estimate), margin = std::log1p(target.same_margin);
  const bool large = size > std::log1p(target.min_effect);
  if (!large && size >= margin) return std::nullopt;
  for (int64_t n = 4; n <= kMostPairs; n += 2) {
    const bool enough = large ? detectable(s, n, target.alpha, target.min_effect).rule <= size
                              : same_width(s, n) <= margin - size;
    if (enough) return n;
  }
  return std::nullopt;
}

std::optional<int64_t> seeds_needed(double sd_of_differences, double margin) {
  if (margin <= 0) return std::nullopt;
  for (int64_t n = 3; n <= kMostSeeds; ++n) {
    if (same_width(sd_of_differences, n) <= margin) return n;
  }
  return std::nullopt;
}

double detectable_by_seeds(double sd, int64_t n) {
  return (t(kTwoSided, 2 * n - 2) + t(kPower, 2 * n - 2)) * sd *
         std::sqrt(2.0 / static_cast<double>(n));
}

}  // namespace assay::evidence
