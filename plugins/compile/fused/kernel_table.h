// The fused kernels as plain functions over contiguous memory, one table per instruction set.
// Nothing here starts threads: callers cut the work, and no cut changes a bit.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>
#include <type_traits>

namespace assay::fused {

/// max(fp32, T): what statistics and sums are kept in.
template <class T>
using StatisticsOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Row kernels for activations of type T. n: length of a row.
template <class T>
struct RowKernels {
  using S = StatisticsOf<T>;

  /// y = x * rstd * scale, rstd = 1 / sqrt(mean(x^2) + eps), arXiv:1910.07467.
  void (*norm)(const T* x, const S* scale, T* y, S* rstd, int64_t rows, int64_t n, S eps);
  /// dx = rstd * (dy * scale - u * mean(dy * scale * u)), u = x * rstd; dscale += sum(dy * u).
  void (*norm_backward)(const T* dy, const T* x, const S* scale, const S* rstd, T* dx, S* dscale,
                        int64_t rows, int64_t n);

  /// One token: each of `heads` rows of 2 * half is rotated by the angles of `cos`, `sin` (half);
  /// `sign` -1 rotates back.
  void (*rope)(const T* x, const S* cos, const S* sin, T* y, int64_t heads, int64_t half, S sign);

  /// silu(gate) * up, arXiv:2002.05202.
  void (*swiglu)(const T* gate, const T* up, T* out, int64_t n);
  void (*swiglu_backward)(const T* dout, const T* gate, const T* up, T* dgate, T* dup, int64_t n);
};

/// Cross entropy over rows of logits in S. A label below 0 has target 0 and no gradient of it.
template <class S>
struct LossKernels {
  void (*stats)(const S* logits, const int64_t* labels, S* max, S* sum_exp, S* target, int64_t rows,
                int64_t vocabulary);
  /// In place: exp(logit - max) * dsum, plus dtarget at the label.
  void (*dlogits)(S* logits, const int64_t* labels, const S* max, const S* dsum, const S* dtarget,
                  int64_t rows, int64_t vocabulary);
};

/// A matrix in memory: element (i, j) at data[i * row + j * column], one of the strides 1.
template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;
};

/// C = A B in fp32 for fp32 or bf16 operands; sums run over k in order, in blocks of a size that
/// depends on k alone, so that a row's bits depend on nothing but its operands.
template <class T>
struct ProductKernels {
  /// Elements of a packed B of k x n.
  int64_t (*packed_size)(int64_t k, int64_t n);
  /// Columns that one panel of the packed form holds.
  int64_t panel;
  /// Packs panel `index` of B (k x n).
  void (*pack)(const Matrix<T>& b, int64_t k, int64_t n, int64_t index, float* packed);
  /// Rows [begin, end) of C (row stride n): overwrites, or adds to what C holds.
  void (*multiply)(const Matrix<T>& a, const float* packed, float* c, int64_t begin, int64_t end,
                   int64_t k, int64_t n, bool accumulate);
  /// To T, to nearest even.
  void (*round)(const float* from, T* to, int64_t n);
};

/// Softmax attention of one head, fp32 inside (arXiv:2205.14135). Row strides are in elements.
/// Causal: keys >= queries, and the last query sees the last key.
template <class T>
struct AttentionProblem {
  const T *q, *k, *v;
  int64_t q_stride, kv_stride;
  int64_t queries, keys, head_dim;
  float scale;
  bool causal;
};

template <class T>
struct AttentionKernels {
  /// out (queries, head_dim) with q's stride; lse (queries), natural logarithm.
  void (*forward)(const AttentionProblem<T>& p, T* out, float* lse);
  /// `group` query heads that share k and v: head g at q + g * head_dim, lse + g * queries, and so
  /// on. dq has q's stride, dk and dv have that of k.
  void (*backward)(const AttentionProblem<T>& p, int64_t group, const T* dout, const T* out,
                   const float* lse, T* dq, T* dk, T* dv);
};

struct KernelTable {
  const char* capability;  ///< "AVX512", "AVX2" or "DEFAULT"
  RowKernels<float> f32;
  RowKernels<double> f64;
  RowKernels<c10::BFloat16> bf16;
  LossKernels<float> loss32;
  LossKernels<double> loss64;
  ProductKernels<float> product32;
  ProductKernels<c10::BFloat16> product16;
  AttentionKernels<float> attention32;
  AttentionKernels<c10::BFloat16> attention16;

  template <class T>
  const RowKernels<T>& rows() const {
    if constexpr (std::is_same_v<T, float>) return f32;
    if constexpr (std::is_same_v<T, double>) return f64;
    if constexpr (std::is_same_v<T, c10::BFloat16>) return bf16;
  }
  template <class S>
  const LossKernels<S>& loss() const {
    if constexpr (std::is_same_v<S, float>) return loss32;
    if constexpr (std::is_same_v<S, double>) return loss64;
  }
  template <class T>
  const ProductKernels<T>& product() const {
    if constexpr (std::is_same_v<T, float>) return product32;
    if constexpr (std::is_same_v<T, c10::BFloat16>) return product16;
  }
  template <class T>
  const AttentionKernels<T>& attention() const {
    if constexpr (std::is_same_v<T, float>) return attention32;
    if constexpr (std::is_same_v<T, c10::BFloat16>) return attention16;
  }
};

const KernelTable& kernels_default();
const KernelTable& kernels_avx2();
const KernelTable& kernels_avx512();

/// The table for what LibTorch found on this CPU (ATEN_CPU_CAPABILITY overrides it).
const KernelTable& kernels();

}  // namespace assay::fused
