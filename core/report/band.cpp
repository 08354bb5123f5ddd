// Bootstrap of whole curves.
#include "core/report/band.h"

#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>

#include "core/store/quantile.h"

namespace assay::report {
namespace {

constexpr int kResamples = 2000;
constexpr double kLevel = 0.95;
constexpr uint64_t kSeed = 20;

struct Moments {
  std::vector<double> mean{}, error{};  ///< standard error of the mean
};

Moments moments_of(const std::vector<std::vector<Point>>& seeds, size_t length) {
  const auto n = static_cast<double>(seeds.size());
  Moments m{.mean = std::vector<double>(length, 0), .error = std::vector<double>(length, 0)};
  for (size_t k = 0; k < length; ++k) {
    for (const auto& seed : seeds) m.mean[k] += seed[k].y / n;
    for (const auto& seed : seeds) m.error[k] += std::pow(seed[k].y - m.mean[k], 2);
    m.error[k] = std::sqrt(m.error[k] / (n - 1) / n);
  }
  return m;
}

}  // namespace

std::vector<double> simultaneous_band(const std::vector<std::vector<Point>>& seeds) {
  if (seeds.size() < 2) return {};
  size_t length = seeds.front().size();
  for (const auto& seed : seeds) length = std::min(length, seed.size());
  const Moments m = moments_of(seeds, length);
  const auto n = static_cast<double>(seeds.size());
  boost::random::mt19937_64 random(kSeed);
  boost::random::uniform_int_distribution<size_t> pick(0, seeds.size() - 1);
  std::vector<double> largest;
  for (int b = 0; b < kResamples; ++b) {
    std::vector<double> weight(seeds.size(), 0);
    for (size_t i = 0; i < seeds.size(); ++i) weight[pick(random)] += 1 / n;
    double t = 0;
    for (size_t k = 0; k < length; ++k) {
      if (m.error[k] == 0) continue;
      double mean = 0;
      for (size_t i = 0; i < seeds.size(); ++i) mean += weight[i] * seeds[i][k].y;
      t = std::max(t, std::abs(mean - m.mean[k]) / m.error[k]);
    }
    largest.push_back(t);
  }
  const double factor = *store::quantile(std::move(largest), kLevel);
  std::vector<double> half(length);
  for (size_t k = 0; k < length; ++k) half[k] = factor * m.error[k];
  return half;
}

}  // namespace assay::report
