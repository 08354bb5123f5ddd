// Two bodies measured in turn, so that what the machine does meanwhile meets both alike.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace assay::bench {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Body>
double seconds(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return seconds_since(start);
}

/// Element at `share` of the sorted values; 0.5: the median.
inline double quantile(std::vector<double> values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

/// Median of a's time over b's, over interleaved pairs; a first pair is not counted.
template <class A, class B>
double ratio(A&& a, B&& b) {
  constexpr int kPairs = 15;
  std::vector<double> ratios;
  for (int pair = -1; pair < kPairs; ++pair) {
    const double of_a = seconds(a), of_b = seconds(b);
    if (pair >= 0) ratios.push_back(of_a / of_b);
  }
  return quantile(std::move(ratios), 0.5);
}

}  // namespace assay::bench
