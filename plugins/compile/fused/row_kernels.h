// Norm, rotary embedding, SwiGLU and cross entropy over rows; see kernel_table.h for the equations.
#pragma once

#include <cmath>

#include "simd.h"

namespace assay::fused {
inline namespace CPU_CAPABILITY {

template <class T>
void norm(const T* x, const StatisticsOf<T>* scale, T* y, StatisticsOf<T>* rstd, int64_t rows,
          int64_t n, StatisticsOf<T> eps) {
  using S = StatisticsOf<T>;
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    Pair<S> sum{Vec<S>(0), Vec<S>(0)};
    for_pairs<S>(n, [&](int64_t i, auto load, auto) {
      const auto v = load(x + i);
      sum = {at::vec::fmadd(v.lo, v.lo, sum.lo), at::vec::fmadd(v.hi, v.hi, sum.hi)};
    });
    rstd[row] = 1 / std::sqrt(sum_of(sum) / static_cast<S>(n) + eps);
    const Vec<S> factor(rstd[row]);
    for_pairs<S>(n, [&](int64_t i, auto load, auto store) {
      const auto v = load(x + i);
      const auto g = load(scale + i);
      store(y + i, Pair<S>{v.lo * factor * g.lo, v.hi * factor * g.hi});
    });
  }
}

template <class T>
void norm_backward(const T* dy, const T* x, const StatisticsOf<T>* scale,
                   const StatisticsOf<T>* rstd, T* dx, StatisticsOf<T>* dscale, int64_t rows,
                   int64_t n) {
  using S = StatisticsOf<T>;
  for (int64_t row = 0; row < rows; ++row, dy += n, x += n, dx += n) {
    Pair<S> sum{Vec<S>(0), Vec<S>(0)};
    for_pairs<S>(n, [&](int64_t i, auto load, auto) {
      const auto d = load(dy + i), v = load(x + i), g = load(scale + i);
      sum = {at::vec::fmadd(d.lo * g.lo, v.lo, sum.lo), at::vec::fmadd(d.hi * g.hi, v.hi, sum.hi)};
    });
    const Vec<S> factor(rstd[row]);
    const Vec<S> along(sum_of(sum) * rstd[row] / static_cast<S>(n));
    for_pairs<S>(n, [&](int64_t i, auto load, auto store) {
      const auto d = load(dy + i), v = load(x + i), g = load(scale + i), total = load(dscale + i);
      const Vec<S> unit_lo = v.lo * factor, unit_hi = v.hi * factor;
      store(dx + i, Pair<S>{(d.lo * g.lo - unit_lo * along) * factor,
                            (d.hi * g.hi - unit_hi * along) * factor});
      store(dscale + i, Pair<S>{at::vec::fmadd(d.lo, unit_lo, total.lo),
                                at::vec::fmadd(d.hi, unit_hi, total.hi)});
    });
  }
}

template <class T>
void rope(const T* x, const StatisticsOf<T>* cos, const StatisticsOf<T>* sin, T* y, int64_t heads,
          int64_t half, StatisticsOf<T> sign) {
  using S = StatisticsOf<T>;
  const Vec<S> direction(sign);
  for (int64_t head = 0; head < heads; ++head, x += 2 * half, y += 2 * half) {
    for_pairs<S>(half, [&](int64_t i, auto load, auto store) {
      const auto first = load(x + i), second = load(x + half + i);
      const auto c = load(cos + i);
      auto s = load(sin + i);
      s = {s.lo * direction, s.hi * direction};
      store(y + i, Pair<S>{first.lo * c.lo - second.lo * s.lo, first.hi * c.hi - second.hi * s.hi});
      store(y + half + i,
            Pair<S>{second.lo * c.lo + first.lo * s.lo, second.hi * c.hi + first.hi * s.hi});
    });
  }
}

template <class S>
inline Vec<S> sigmoid(const Vec<S>& x) {
  return Vec<S>(1) / (Vec<S>(1) + exp_of(x.neg()));
}

template <class T>
void swiglu(const T* gate, const T* up, T* out, int64_t n) {
  using S = StatisticsOf<T>;
  for_pairs<S>(n, [&](int64_t i, auto load, auto store) {
    const auto g = load(gate + i), u = load(up + i);
    store(out + i, Pair<S>{g.lo * sigmoid<S>(g.lo) * u.lo, g.hi * sigmoid<S>(g.hi) * u.hi});
  });
}

template <class S>
struct SwigluGradient {
  Vec<S> gate, up;
};
template <class S>
inline SwigluGradient<S> swiglu_gradient(const Vec<S>& d, const Vec<S>& g, const Vec<S>& u) {
  const Vec<S> s = sigmoid<S>(g), one(1);
  return {d * u * s * at::vec::fmadd(g, one - s, one), d * g * s};
}

template <class T>
void swiglu_backward(const T* dout, const T* gate, const T* up, T* dgate, T* dup, int64_t n) {
  using S = StatisticsOf<T>;
  for_pairs<S>(n, [&](int64_t i, auto load, auto store) {
    const auto d = load(dout + i), g = load(gate + i), u = load(up + i);
    const auto lo = swiglu_gradient<S>(d.lo, g.lo, u.lo), hi = swiglu_gradient<S>(d.hi, g.hi, u.hi);
    store(dgate + i, Pair<S>{lo.gate, hi.gate});
    store(dup + i, Pair<S>{lo.up, hi.up});
  });
}

template <class S>
S largest(const S* x, int64_t n) {
  Vec<S> best(-std::numeric_limits<S>::infinity());
  int64_t i = 0;
  for (; i + Vec<S>::size() <= n; i += Vec<S>::size()) {
    best = at::vec::maximum(best, Vec<S>::loadu(x + i));
  }
  S result =
      at::vec::vec_reduce_all<S>([](auto& a, auto& b) { return at::vec::maximum(a, b); }, best);
  for (; i < n; ++i) result = std::max(result, x[i]);
  return result;
}

template <class S>
void loss_stats(const S* logits, const int64_t* labels, S* max, S* sum_exp, S* target, int64_t rows,
                int64_t vocabulary) {
  for (int64_t row = 0; row < rows; ++row, logits += vocabulary) {
    max[row] = largest(logits, vocabulary);
    const Vec<S> shift(max[row]);
    Vec<S> sum(0);
    int64_t i = 0;
    for (; i + Vec<S>::size() <= vocabulary; i += Vec<S>::size()) {
      sum = sum + exp_of(Vec<S>::loadu(logits + i) - shift);
    }
    S total = at::vec::vec_reduce_all<S>([](auto& a, auto& b) { return a + b; }, sum);
    for (; i < vocabulary; ++i) total += std::exp(logits[i] - max[row]);
    sum_exp[row] = total;
    target[row] = labels[row] < 0 ? S(0) : logits[labels[row]];
  }
}

template <class S>
void loss_dlogits(S* logits, const int64_t* labels, const S* max, const S* dsum, const S* dtarget,
                  int64_t rows, int64_t vocabulary) {
  for (int64_t row = 0; row < rows; ++row, logits += vocabulary) {
    const Vec<S> shift(max[row]), factor(dsum[row]);
    for_pairs<S>(vocabulary, [&](int64_t i, auto load, auto store) {
      const auto v = load(logits + i);
      store(logits + i, Pair<S>{exp_of(v.lo - shift) * factor, exp_of(v.hi - shift) * factor});
    });
    if (labels[row] >= 0) logits[labels[row]] += dtarget[row];
  }
}

template <class T>
RowKernels<T> row_kernels() {
  return {norm<T>, norm_backward<T>, rope<T>, swiglu<T>, swiglu_backward<T>};
}
template <class S>
LossKernels<S> loss_kernels() {
  return {loss_stats<S>, loss_dlogits<S>};
}

}  // namespace CPU_CAPABILITY
}  // namespace assay::fused
