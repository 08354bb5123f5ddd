// The inner loops of the fused AdamW; see the header. No LibTorch here: it compiles in no time.
#include "fused_adamw_loop.h"

#include <bit>
#include <cmath>

// Plain loops that the compiler vectorises for each instruction set. All of them round every
// operation once, in the order written, so they give the same bits.
#define ASSAY_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "avx2", "default"), optimize("O3")))

namespace assay::optim {
namespace {

inline float widen(float g) { return g; }
inline double widen(double g) { return g; }
inline float widen(uint16_t g) { return std::bit_cast<float>(static_cast<uint32_t>(g) << 16); }

inline uint16_t round_to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return static_cast<uint16_t>(is_nan ? 0x7FC0 : rounded);
}

template <class T, class G>
inline __attribute__((always_inline)) void update(T* __restrict w, const G* __restrict g,
                                                  T* __restrict m, T* __restrict q, int64_t n,
                                                  const AdamWScalars<T>& constants) {
  const AdamWScalars<T> s = constants;
  for (int64_t i = 0; i < n; ++i) {
    const T gradient = widen(g[i]);
    const T first = s.beta1 * m[i] + s.one_minus_beta1 * gradient;
    const T second = s.beta2 * q[i] + s.one_minus_beta2 * gradient * gradient;
    const T scale = std::sqrt(second / s.correction2) + s.eps;
    w[i] = w[i] * s.keep - s.lr * (first / s.correction1) / scale;
    m[i] = first;
    q[i] = second;
  }
}

}  // namespace

ASSAY_CLONES void adamw_loop(float* w, const float* g, float* m, float* q, int64_t n,
                             const AdamWScalars<float>& s) {
  update(w, g, m, q, n, s);
}
ASSAY_CLONES void adamw_loop(float* w, const uint16_t* g, float* m, float* q, int64_t n,
                             const AdamWScalars<float>& s) {
  update(w, g, m, q, n, s);
}
ASSAY_CLONES void adamw_loop(double* w, const double* g, double* m, double* q, int64_t n,
                             const AdamWScalars<double>& s) {
  update(w, g, m, q, n, s);
}
ASSAY_CLONES void adamw_loop(double* w, const uint16_t* g, double* m, double* q, int64_t n,
                             const AdamWScalars<double>& s) {
  update(w, g, m, q, n, s);
}

ASSAY_CLONES void round_loop(const float* from, uint16_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = round_to_bf16(from[i]);
}
ASSAY_CLONES void round_loop(const double* from, uint16_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = round_to_bf16(static_cast<float>(from[i]));
}

}  // namespace assay::optim
