// Null distributions by dynamic programming; Walsh averages by sorting.
#include "core/evidence/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "assay/error.h"

namespace assay::evidence {
namespace {

using Probabilities = std::vector<double>;

/// P(sum = s) when every rank is in the sum with probability one half. Halving is exact.
Probabilities null_distribution(const std::vector<size_t>& ranks) {
  Probabilities p(1 + std::accumulate(ranks.begin(), ranks.end(), size_t{0}), 0.0);
  p[0] = 1;
  size_t top = 0;
  for (const size_t rank : ranks) {
    top += rank;
    for (size_t s = top + 1; s-- > 0;) p[s] = 0.5 * (p[s] + (s >= rank ? p[s - rank] : 0));
  }
  return p;
}

double sum(const Probabilities& p, size_t first, size_t last) {
  double total = 0;
  for (size_t s = first; s <= last && s < p.size(); ++s) total += p[s];
  return total;
}

/// Mid-ranks of |d|, doubled: ties share (first + last) of their places.
std::vector<size_t> doubled_ranks(const std::vector<double>& d) {
  std::vector<size_t> order(d.size()), ranks(d.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::abs(d[a]) < std::abs(d[b]); });
  for (size_t first = 0, last; first < order.size(); first = last) {
    last = first + 1;
    while (last < order.size() && std::abs(d[order[last]]) == std::abs(d[order[first]])) ++last;
    for (size_t i = first; i < last; ++i) ranks[order[i]] = first + 1 + last;
  }
  return ranks;
}

std::vector<double> walsh_averages(std::span<const double> d) {
  std::vector<double> averages;
  averages.reserve(d.size() * (d.size() + 1) / 2);
  for (size_t i = 0; i < d.size(); ++i) {
    for (size_t j = i; j < d.size(); ++j) averages.push_back((d[i] + d[j]) / 2);
  }
  std::sort(averages.begin(), averages.end());
  return averages;
}

}  // namespace

SignedRank signed_rank(std::span<const double> differences) { return signed_rank(differences, 0); }

SignedRank signed_rank(std::span<const double> differences, double shift) {
  std::vector<double> d;
  for (const double x : differences) {
    if (x + shift != 0) d.push_back(x + shift);
  }
  if (d.empty()) return {};
  const std::vector<size_t> ranks = doubled_ranks(d);
  size_t w2 = 0;
  for (size_t i = 0; i < d.size(); ++i) w2 += d[i] > 0 ? ranks[i] : 0;
  const Probabilities p = null_distribution(ranks);
  return {.n = static_cast<int64_t>(d.size()),
          .w_plus = static_cast<double>(w2) / 2,
          .p_greater = sum(p, w2, p.size()),
          .p_less = sum(p, 0, w2)};
}

double hodges_lehmann(std::span<const double> differences) {
  ASSAY_CHECK(!differences.empty(), "an estimate of no differences");
  const std::vector<double> w = walsh_averages(differences);
  return (w[(w.size() - 1) / 2] + w[w.size() / 2]) / 2;
}

std::optional<Interval> signed_rank_interval(std::span<const double> differences, double alpha) {
  std::vector<size_t> ranks(differences.size());
  std::iota(ranks.begin(), ranks.end(), size_t{1});
  const Probabilities p = null_distribution(ranks);
  size_t k = 0;
  double tail = 0;
  while (k < p.size() && tail + p[k] <= alpha) tail += p[k++];
  if (k == 0 || differences.empty()) return std::nullopt;
  const std::vector<double> w = walsh_averages(differences);
  return Interval{.low = w[k - 1], .high = w[w.size() - k], .level = 1 - 2 * tail};
}

}  // namespace assay::evidence
