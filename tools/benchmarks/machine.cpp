// Bandwidth and peak; see the header.
#include "machine.h"

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <immintrin.h>

#include <algorithm>
#include <chrono>

namespace assay::bench {
namespace {

template <class Body>
double best_seconds(int passes, Body&& body) {
  double best = 1e30;
  for (int i = 0; i < passes; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

constexpr int kAccumulators = 12;
constexpr int64_t kRounds = 2'000'000;

// Twelve independent sums hide the latency of two units of four cycles.
__attribute__((target("avx2,fma"))) float multiply_add_rounds() {
  __m256 sums[kAccumulators];
  for (auto& s : sums) s = _mm256_set1_ps(1.0F);
  const __m256 factor = _mm256_set1_ps(0.9999F), term = _mm256_set1_ps(1e-4F);
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kAccumulators; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
  }
  float total = 0;
#pragma GCC unroll 12
  for (int i = 0; i < kAccumulators; ++i) total += _mm256_cvtss_f32(sums[i]);
  return total;
}

}  // namespace

double memory_bandwidth() {
  constexpr int64_t kElements = int64_t{1} << 26;
  const at::Tensor x = at::ones({kElements}), y = at::ones({kElements});
  return 3.0 * 4 * kElements / best_seconds(7, [&] { y.add_(x); });
}

double peak_flops() {
  if (!__builtin_cpu_supports("fma")) return 0;
  volatile float sink = 0;
  const int threads = at::get_num_threads();
  const double seconds = best_seconds(7, [&] {
    at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) sink = multiply_add_rounds();
    });
  });
  constexpr double kPerRound = 2.0 * 8 * kAccumulators;
  return kPerRound * kRounds * threads / seconds;
}

}  // namespace assay::bench
