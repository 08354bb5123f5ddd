// Vector helpers of the fused kernels; included once per instruction set, names differ by
// namespace.
#pragma once

#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernel_table.h"

namespace assay::fused {
inline namespace CPU_CAPABILITY {

template <class S>
using Vec = at::vec::Vectorized<S>;

/// Two vectors of the statistics type S: the unit in which rows are read and written, because a
/// vector of bf16 widens to two of float.
template <class S>
struct Pair {
  static constexpr int64_t size = 2 * Vec<S>::size();
  Vec<S> lo, hi;
};

template <class S>
inline Pair<S> load(const S* p) {
  return {Vec<S>::loadu(p), Vec<S>::loadu(p + Vec<S>::size())};
}
inline Pair<float> load(const c10::BFloat16* p) {
  auto [lo, hi] = at::vec::convert_to_float<c10::BFloat16>(Vec<c10::BFloat16>::loadu(p));
  return {lo, hi};
}

template <class S>
inline void store(S* p, const Pair<S>& v) {
  v.lo.store(p);
  v.hi.store(p + Vec<S>::size());
}
inline void store(c10::BFloat16* p, const Pair<float>& v) {
  at::vec::convert_from_float<c10::BFloat16>(v.lo, v.hi).store(p);
}

/// Reads `count` < size elements; the others are 0.
template <class T>
inline auto load_some(const T* p, int64_t count) {
  T padded[Pair<StatisticsOf<T>>::size] = {};
  std::copy_n(p, count, padded);
  return load(padded);
}
template <class T>
inline void store_some(T* p, const Pair<StatisticsOf<T>>& v, int64_t count) {
  T padded[Pair<StatisticsOf<T>>::size];
  store(padded, v);
  std::copy_n(padded, count, p);
}

/// Calls body(offset, load, store) over n elements; the last call handles a remainder.
template <class S, class Body>
inline void for_pairs(int64_t n, Body&& body) {
  constexpr int64_t kStep = Pair<S>::size;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    body(
        i, [](const auto* p) { return load(p); }, [](auto* p, const auto& v) { store(p, v); });
  }
  if (const int64_t rest = n - i; rest > 0) {
    body(
        i, [rest](const auto* p) { return load_some(p, rest); },
        [rest](auto* p, const auto& v) { store_some(p, v, rest); });
  }
}

template <class S>
inline S sum_of(const Pair<S>& v) {
  return at::vec::vec_reduce_all<S>([](auto& a, auto& b) { return a + b; }, v.lo + v.hi);
}

inline Vec<double> exp_of(const Vec<double>& x) { return x.exp(); }

/// e^x to 2 ulp (Cephes expf): x = n ln 2 + r, e^r by a polynomial; 0 below the smallest normal.
inline Vec<float> exp_of(const Vec<float>& x) {
  using V = Vec<float>;
  const V clamped = at::vec::clamp(x, V(-87.3F), V(88.3F));
  const V n = (clamped * V(1.44269504F)).round();
  V r = at::vec::fmadd(n, V(-0.693359375F), clamped);
  r = at::vec::fmadd(n, V(2.12194440e-4F), r);
  V p = at::vec::fmadd(V(1.9875691500e-4F), r, V(1.3981999507e-3F));
  p = at::vec::fmadd(p, r, V(8.3334519073e-3F));
  p = at::vec::fmadd(p, r, V(4.1665795894e-2F));
  p = at::vec::fmadd(p, r, V(1.6666665459e-1F));
  p = at::vec::fmadd(p, r, V(5.0000001201e-1F));
  p = at::vec::fmadd(p, r * r, r) + V(1.0F);
  const auto exponent = at::vec::convert_to_int_of_same_size(n);
  const auto bits = (exponent + Vec<int32_t>(127)) << Vec<int32_t>(23);
  return V::blendv(V(0.0F), p * at::vec::cast<float>(bits), x > V(-87.3F));
}

}  // namespace CPU_CAPABILITY
}  // namespace assay::fused
