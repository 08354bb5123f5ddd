// AVX2 sums. Only intrinsics inside the target region: a library function instantiated there could
// be picked for the whole program and crash older processors.
#include "reduce.h"

#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#include <immintrin.h>

namespace assay::comm {
namespace {

struct Float {
  using Element = float;
  using Vector = __m256;
  static constexpr int64_t kWidth = 8;
  static Vector load(const Element* p) { return _mm256_loadu_ps(p); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static void store(Element* p, Vector v) { _mm256_storeu_ps(p, v); }
};

struct Double {
  using Element = double;
  using Vector = __m256d;
  static constexpr int64_t kWidth = 4;
  static Vector load(const Element* p) { return _mm256_loadu_pd(p); }
  static Vector add(Vector a, Vector b) { return _mm256_add_pd(a, b); }
  static void store(Element* p, Vector v) { _mm256_storeu_pd(p, v); }
};

struct Half {
  using Element = uint16_t;
  using Vector = __m256;
  static constexpr int64_t kWidth = 8;
  static Vector load(const Element* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static void store(Element* p, Vector v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct BFloat16 {
  using Element = uint16_t;
  using Vector = __m256;
  static constexpr int64_t kWidth = 8;
  static Vector load(const Element* p) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  /// Round to nearest even, NaN to 0x7fc0, as c10 does.
  static void store(Element* p, Vector v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i wide = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
    const __m256i packed = _mm256_packus_epi32(wide, wide);  // per 128-bit lane
    const __m256i ordered = _mm256_permute4x64_epi64(packed, 0b1000);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(ordered));
  }
};

/// One vector of every rank at offset i, summed in rank order.
template <class V>
inline typename V::Vector total(const void* const* from, int ranks, int64_t i) {
  auto sum = V::load(static_cast<const typename V::Element*>(from[0]) + i);
  for (int rank = 1; rank < ranks; ++rank) {
    sum = V::add(sum, V::load(static_cast<const typename V::Element*>(from[rank]) + i));
  }
  return sum;
}

/// The last elements, through a full-width buffer so that they round like the others.
template <class V>
void tail(void* to, const void* const* from, int ranks, int64_t begin, int64_t count) {
  typename V::Element padded[V::kWidth] = {};
  typename V::Vector sum{};
  for (int rank = 0; rank < ranks; ++rank) {
    const auto* p = static_cast<const typename V::Element*>(from[rank]);
    for (int64_t i = begin; i < count; ++i) padded[i - begin] = p[i];
    sum = rank == 0 ? V::load(padded) : V::add(sum, V::load(padded));
  }
  V::store(padded, sum);
  for (int64_t i = begin; i < count; ++i) {
    static_cast<typename V::Element*>(to)[i] = padded[i - begin];
  }
}

template <class V>
void sum(void* to, const void* const* from, int ranks, int64_t count) {
  auto* out = static_cast<typename V::Element*>(to);
  int64_t i = 0;
  for (; i + 2 * V::kWidth <= count; i += 2 * V::kWidth) {
    const auto low = total<V>(from, ranks, i);
    const auto high = total<V>(from, ranks, i + V::kWidth);
    V::store(out + i, low);
    V::store(out + i + V::kWidth, high);
  }
  for (; i + V::kWidth <= count; i += V::kWidth) V::store(out + i, total<V>(from, ranks, i));
  if (i < count) tail<V>(to, from, ranks, i, count);
}

}  // namespace
}  // namespace assay::comm
#pragma GCC pop_options

namespace assay::comm {

Reduction find_avx2_reduction(at::ScalarType dtype, ReduceOp op) {
  if (op != ReduceOp::sum) return nullptr;
  switch (dtype) {
    case at::kFloat:
      return sum<Float>;
    case at::kDouble:
      return sum<Double>;
    case at::kBFloat16:
      return sum<BFloat16>;
    case at::kHalf:
      return sum<Half>;
    default:
      return nullptr;
  }
}

}  // namespace assay::comm
