// Hierarchical splitting by the energy statistic.
#include "core/report/change_points.h"

#include <algorithm>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <cmath>

#include "core/store/quantile.h"

namespace assay::report {
namespace {

constexpr uint64_t kSeed = 7;

struct Split {
  size_t index = 0;
  double q = 0;
};

/// The best split of a segment, in O(n^2): sums within the left and the right part and between
/// them are kept up to date while a value moves from right to left.
Split best_split(std::span<const double> x, size_t shortest) {
  const size_t n = x.size();
  double left = 0, between = 0, right = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) right += std::abs(x[i] - x[j]);
  }
  Split best;
  for (size_t m = 1; m + shortest <= n; ++m) {
    const double moved = x[m - 1];
    double to_left = 0, to_right = 0;
    for (size_t i = 0; i + 1 < m; ++i) to_left += std::abs(moved - x[i]);
    for (size_t j = m; j < n; ++j) to_right += std::abs(moved - x[j]);
    left += to_left;
    between += to_right - to_left;
    right -= to_right;
    if (m < shortest) continue;
    const auto a = static_cast<double>(m), b = static_cast<double>(n - m);
    const double q = a * b / (a + b) *
                     (2 * between / (a * b) - left / (a * (a - 1) / 2) - right / (b * (b - 1) / 2));
    if (best.index == 0 || q > best.q) best = {m, q};
  }
  return best;
}

/// Share of random orders whose best split is as good: (1 + count) / (1 + orders).
double permutation_p(std::span<const double> x, const Split& split, const ChangeRule& rule) {
  boost::random::mt19937_64 random(kSeed);
  std::vector<double> order(x.begin(), x.end());
  int reached = 0;
  const double reach = split.q * (1 - 1e-9);  // sums in another order are equal but for rounding
  for (int r = 0; r < rule.permutations; ++r) {
    for (size_t i = order.size(); i > 1; --i) {
      boost::random::uniform_int_distribution<size_t> pick(0, i - 1);
      std::swap(order[i - 1], order[pick(random)]);
    }
    reached += best_split(order, rule.shortest).q >= reach;
  }
  return (1.0 + reached) / (1.0 + rule.permutations);
}

double median(std::span<const double> x) {
  return *store::quantile(std::vector<double>(x.begin(), x.end()), 0.5);
}

void split_segment(std::span<const double> x, size_t offset, const ChangeRule& rule,
                   std::vector<ChangePoint>& found) {
  if (x.size() < 2 * rule.shortest) return;
  const Split split = best_split(x, rule.shortest);
  if (split.q <= 0) return;
  const double p = permutation_p(x, split, rule);
  if (p >= rule.alpha) return;
  split_segment(x.first(split.index), offset, rule, found);
  found.push_back({.index = offset + split.index, .p = p});
  split_segment(x.subspan(split.index), offset + split.index, rule, found);
}

/// Medians of neighbouring segments; the smallest change below the effect is undone first.
void keep_effects(std::span<const double> x, double min_effect, std::vector<ChangePoint>& found) {
  while (true) {
    for (size_t i = 0; i < found.size(); ++i) {
      const size_t begin = i == 0 ? 0 : found[i - 1].index;
      const size_t end = i + 1 == found.size() ? x.size() : found[i + 1].index;
      found[i].before = median(x.subspan(begin, found[i].index - begin));
      found[i].after = median(x.subspan(found[i].index, end - found[i].index));
    }
    const auto least = std::min_element(found.begin(), found.end(),
                                        [](const ChangePoint& a, const ChangePoint& b) {
                                          return std::abs(a.change()) < std::abs(b.change());
                                        });
    if (least == found.end() || std::abs(least->change()) >= min_effect) return;
    found.erase(least);
  }
}

}  // namespace

std::vector<ChangePoint> change_points(std::span<const double> values, const ChangeRule& rule) {
  std::vector<ChangePoint> found;
  split_segment(values, 0, rule, found);
  keep_effects(values, rule.min_effect, found);
  return found;
}

}  // namespace assay::report
