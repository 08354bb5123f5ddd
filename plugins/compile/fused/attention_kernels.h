// Attention of one head by blocks of queries and keys, scores never leave the cache: the online
// softmax of FlashAttention (arXiv:2205.14135) and the backward of FlashAttention-2
// (arXiv:2307.08691), on the register tile of product_kernels.h.
#pragma once

#include <c10/core/CPUAllocator.h>

#include <cmath>

#include "product_kernels.h"
#include "row_kernels.h"

namespace assay::fused {
inline namespace CPU_CAPABILITY {

constexpr int64_t kQueryBlock = 96;
constexpr int64_t kKeyBlock = 128;

/// Floats that one call needs and no other sees, from LibTorch's allocator, which counts them.
class Scratch {
 public:
  explicit Scratch(int64_t size)
      : data_(c10::GetCPUAllocator()->allocate(static_cast<size_t>(size) * sizeof(float))) {}
  float* take(int64_t size) {
    float* result = static_cast<float*>(data_.get()) + used_;
    used_ += size;
    return result;
  }

 private:
  c10::DataPtr data_;
  int64_t used_ = 0;
};

/// Rows of x widened to fp32, contiguous.
template <class T>
void widen_rows(const T* x, int64_t stride, int64_t rows, int64_t n, float* to) {
  for (int64_t i = 0; i < rows; ++i, x += stride, to += n) {
    for_pairs<float>(n, [&](int64_t j, auto load, auto store) { store(to + j, load(x + j)); });
  }
}
template <class T>
void narrow_rows(const float* from, int64_t rows, int64_t n, T* x, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i, x += stride, from += n) {
    for_pairs<float>(n, [&](int64_t j, auto load, auto store) { store(x + j, load(from + j)); });
  }
}

/// B of k x n (rows contiguous, or columns when `by_columns`) packed panel after panel.
template <class T>
void pack_all(const T* data, int64_t stride, bool by_columns, int64_t k, int64_t n, float* packed) {
  const Matrix<T> b = by_columns ? Matrix<T>{data, 1, stride} : Matrix<T>{data, stride, 1};
  for (int64_t index = 0; index * kPanel < n; ++index) pack(b, k, n, index, packed);
}

/// The queries [i0, i0 + rows) against the keys [j0, j0 + keys).
struct Window {
  int64_t i0, rows, j0, keys;
  bool causal;
  int64_t before;  ///< causal: keys that the first query of all sees besides its own
  /// Keys of this window that query i0 + row may see.
  int64_t visible(int64_t row) const {
    return causal ? std::clamp<int64_t>(before + i0 + row + 1 - j0, 0, keys) : keys;
  }
  /// The first row that may see key j0 + key.
  int64_t first_row(int64_t key) const {
    return causal ? std::clamp<int64_t>(j0 + key - before - i0, 0, rows) : 0;
  }
};

/// The last query sees the last key.
template <class T>
int64_t keys_before(const AttentionProblem<T>& p) {
  return p.causal ? p.keys - p.queries : 0;
}

/// Keys that any of the queries [i0, i0 + rows) may see.
template <class T>
int64_t visible_end(const AttentionProblem<T>& p, int64_t i0, int64_t rows) {
  return p.causal ? std::min(p.keys, keys_before(p) + i0 + rows) : p.keys;
}

/// scores (rows x keys, row stride kKeyBlock) = a (rows x d) * keys packed by columns; tiles that
/// no query of their rows may see are left alone.
inline void score_tiles(const Window& w, const float* a, const float* packed, int64_t d,
                        float* scores) {
  for (int64_t i = 0; i < w.rows; i += kTileRows) {
    const int64_t rows = std::min(kTileRows, w.rows - i);
    const int64_t end = w.visible(i + rows - 1);
    for (int64_t j = 0; j < end; j += kPanel) {
      tile(rows, d, a + i * d, d, 1, packed + (w.j0 + j) * d, scores + i * kKeyBlock + j, kKeyBlock,
           std::min(kPanel, w.keys - j), false);
    }
  }
}

/// out (rows x d) += scores * values, values packed by rows over all keys.
inline void value_tiles(const Window& w, const float* scores, const float* packed, int64_t all_keys,
                        int64_t d, float* out) {
  for (int64_t j = 0; j < d; j += kPanel) {
    const float* panel = packed + j * all_keys + w.j0 * kPanel;
    for (int64_t i = 0; i < w.rows; i += kTileRows) {
      const int64_t rows = std::min(kTileRows, w.rows - i);
      tile(rows, w.visible(i + rows - 1), scores + i * kKeyBlock, kKeyBlock, 1, panel,
           out + i * d + j, d, std::min(kPanel, d - j), true);
    }
  }
}

/// out (keys x d) += scores^T * b, b (rows x d) packed by rows.
inline void key_tiles(const Window& w, const float* scores, const float* packed, int64_t d,
                      float* out) {
  for (int64_t j = 0; j < d; j += kPanel) {
    for (int64_t i = 0; i < w.keys; i += kTileRows) {
      const int64_t first = w.first_row(i);
      tile(std::min(kTileRows, w.keys - i), w.rows - first, scores + first * kKeyBlock + i, 1,
           kKeyBlock, packed + j * w.rows + first * kPanel, out + (w.j0 + i) * d + j, d,
           std::min(kPanel, d - j), true);
    }
  }
}

/// Runs body(offset, load, store) over a row's visible keys, then zeroes what the tiles of its
/// neighbours read beyond them.
template <class Body>
inline void visible_keys(const Window& w, int64_t row, float* scores, Body&& body) {
  const int64_t n = w.visible(row);
  for_pairs<float>(n, body);
  std::fill(scores + n, scores + std::min(w.keys, n + kTileRows), 0.0F);
}

/// What the online softmax knows of a block of queries.
struct RunningSoftmax {
  float max[kQueryBlock], sum[kQueryBlock];
};

/// scores -> exp(scale * scores - max), with the running max; what was summed before is rescaled.
inline void online_softmax(const Window& w, float scale, int64_t d, float* scores,
                           RunningSoftmax& state, float* out) {
  for (int64_t row = 0; row < w.rows; ++row, scores += kKeyBlock) {
    const int64_t n = w.visible(row);
    if (n == 0) {
      std::fill_n(scores, std::min(w.keys, kTileRows), 0.0F);
      continue;
    }
    const float old = state.max[row];
    const float max = std::max(old, largest(scores, n) * scale);
    const Vec<float> shift(max), factor(scale);
    visible_keys(w, row, scores, [&](int64_t j, auto load, auto store) {
      const auto v = load(scores + j);
      store(scores + j, Pair<float>{exp_of(at::vec::fmsub(v.lo, factor, shift)),
                                    exp_of(at::vec::fmsub(v.hi, factor, shift))});
    });
    Pair<float> total{Vec<float>(0.0F), Vec<float>(0.0F)};
    for_pairs<float>(n, [&](int64_t j, auto load, auto) {
      const auto v = load(scores + j);
      total = {total.lo + v.lo, total.hi + v.hi};
    });
    const float keep = std::exp(old - max);  // 0 at first: old is -inf
    state.sum[row] = state.sum[row] * keep + sum_of(total);
    state.max[row] = max;
    if (keep == 1.0F) continue;
    const Vec<float> rescale(keep);
    for_pairs<float>(d, [&](int64_t j, auto load, auto store) {
      const auto v = load(out + row * d + j);
      store(out + row * d + j, Pair<float>{v.lo * rescale, v.hi * rescale});
    });
  }
}

/// out / sum, and lse = max + ln sum.
inline void finish_softmax(int64_t rows, int64_t d, const RunningSoftmax& state, float* out,
                           float* lse) {
  for (int64_t row = 0; row < rows; ++row) {
    const Vec<float> factor(1.0F / state.sum[row]);
    for_pairs<float>(d, [&](int64_t j, auto load, auto store) {
      const auto v = load(out + row * d + j);
      store(out + row * d + j, Pair<float>{v.lo * factor, v.hi * factor});
    });
    lse[row] = state.max[row] + std::log(state.sum[row]);
  }
}

template <class T>
void attention_forward(const AttentionProblem<T>& p, T* out, float* lse) {
  const int64_t d = p.head_dim;
  Scratch scratch(packed_size(d, p.keys) + packed_size(p.keys, d) +
                  kQueryBlock * (2 * d + kKeyBlock));
  float* keys = scratch.take(packed_size(d, p.keys));
  float* values = scratch.take(packed_size(p.keys, d));
  float* query = scratch.take(kQueryBlock * d);
  float* sum = scratch.take(kQueryBlock * d);
  float* scores = scratch.take(kQueryBlock * kKeyBlock);
  pack_all(p.k, p.kv_stride, /*by_columns=*/true, d, p.keys, keys);
  pack_all(p.v, p.kv_stride, /*by_columns=*/false, p.keys, d, values);
  for (int64_t i0 = 0; i0 < p.queries; i0 += kQueryBlock) {
    const int64_t rows = std::min(kQueryBlock, p.queries - i0);
    const int64_t end = visible_end(p, i0, rows);
    RunningSoftmax state;
    std::fill_n(state.max, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(state.sum, rows, 0.0F);
    std::fill_n(sum, rows * d, 0.0F);
    widen_rows(p.q + i0 * p.q_stride, p.q_stride, rows, d, query);
    for (int64_t j0 = 0; j0 < end; j0 += kKeyBlock) {
      const Window w{i0, rows, j0, std::min(kKeyBlock, p.keys - j0), p.causal, keys_before(p)};
      score_tiles(w, query, keys, d, scores);
      online_softmax(w, p.scale, d, scores, state, sum);
      value_tiles(w, scores, values, p.keys, d, sum);
    }
    finish_softmax(rows, d, state, sum, lse + i0);
    narrow_rows(sum, rows, d, out + i0 * p.q_stride, p.q_stride);
  }
}

/// scores -> P = exp(scale * scores - lse); dscores -> P * (dscores - delta) * scale.
inline void softmax_backward(const Window& w, float scale, const float* lse, const float* delta,
                             float* scores, float* dscores) {
  for (int64_t row = 0; row < w.rows; ++row, scores += kKeyBlock, dscores += kKeyBlock) {
    const Vec<float> shift(lse[row]), mean(delta[row]), factor(scale);
    visible_keys(w, row, scores, [&](int64_t j, auto load, auto store) {
      const auto s = load(scores + j), ds = load(dscores + j);
      const Pair<float> p{exp_of(at::vec::fmsub(s.lo, factor, shift)),
                          exp_of(at::vec::fmsub(s.hi, factor, shift))};
      store(scores + j, p);
      store(dscores + j,
            Pair<float>{p.lo * (ds.lo - mean) * factor, p.hi * (ds.hi - mean) * factor});
    });
    const int64_t n = w.visible(row);
    std::fill(dscores + n, dscores + std::min(w.keys, n + kTileRows), 0.0F);
  }
}

/// Key-side operands of one kv head, packed once and shared by its query heads.
struct PackedKeys {
  float *keys_by_column, *values_by_column, *keys_by_row;
};

/// One block of queries of one head: dq is complete after it, dk and dv grow.
template <class T>
class QueryBlockBackward {
 public:
  QueryBlockBackward(const AttentionProblem<T>& p, const PackedKeys& packed, Scratch& scratch)
      : p_(p), packed_(packed), d_(p.head_dim) {
    for (float** rows : {&query_, &dout_, &dquery_}) *rows = scratch.take(kQueryBlock * d_);
    for (float** b : {&query_packed_, &dout_packed_})
      *b = scratch.take(packed_size(kQueryBlock, d_));
    for (float** s : {&scores_, &dscores_}) *s = scratch.take(kQueryBlock * kKeyBlock);
  }

  static int64_t scratch_size(int64_t d) {
    return 3 * kQueryBlock * d + 2 * packed_size(kQueryBlock, d) + 2 * kQueryBlock * kKeyBlock;
  }

  void run(int64_t i0, const T* q, const T* dout, const T* out, const float* lse, T* dq, float* dk,
           float* dv) {
    const int64_t rows = std::min(kQueryBlock, p_.queries - i0);
    const int64_t end = visible_end(p_, i0, rows);
    const int64_t offset = i0 * p_.q_stride;
    load_rows(rows, q + offset, dout + offset, out + offset);
    for (int64_t j0 = 0; j0 < end; j0 += kKeyBlock) {
      const Window w{i0, rows, j0, std::min(kKeyBlock, p_.keys - j0), p_.causal, keys_before(p_)};
      score_tiles(w, query_, packed_.keys_by_column, d_, scores_);
      score_tiles(w, dout_, packed_.values_by_column, d_, dscores_);
      softmax_backward(w, p_.scale, lse + i0, delta_, scores_, dscores_);
      key_tiles(w, scores_, dout_packed_, d_, dv);
      key_tiles(w, dscores_, query_packed_, d_, dk);
      value_tiles(w, dscores_, packed_.keys_by_row, p_.keys, d_, dquery_);
    }
    narrow_rows(dquery_, rows, d_, dq + offset, p_.q_stride);
  }

 private:
  void load_rows(int64_t rows, const T* q, const T* dout, const T* out) {
    widen_rows(q, p_.q_stride, rows, d_, query_);
    widen_rows(dout, p_.q_stride, rows, d_, dout_);
    widen_rows(out, p_.q_stride, rows, d_, dquery_);  // for delta only
    for (int64_t row = 0; row < rows; ++row) {
      Pair<float> sum{Vec<float>(0.0F), Vec<float>(0.0F)};
      for_pairs<float>(d_, [&](int64_t j, auto load, auto) {
        const auto a = load(dout_ + row * d_ + j), b = load(dquery_ + row * d_ + j);
        sum = {at::vec::fmadd(a.lo, b.lo, sum.lo), at::vec::fmadd(a.hi, b.hi, sum.hi)};
      });
      delta_[row] = sum_of(sum);
    }
    std::fill_n(dquery_, rows * d_, 0.0F);
    pack_all(query_, d_, /*by_columns=*/false, rows, d_, query_packed_);
    pack_all(dout_, d_, /*by_columns=*/false, rows, d_, dout_packed_);
  }

  const AttentionProblem<T>& p_;
  const PackedKeys& packed_;
  const int64_t d_;
  float *query_, *dout_, *dquery_, *query_packed_, *dout_packed_, *scores_, *dscores_;
  float delta_[kQueryBlock];
};

template <class T>
void attention_backward(const AttentionProblem<T>& p, int64_t group, const T* dout, const T* out,
                        const float* lse, T* dq, T* dk, T* dv) {
  const int64_t d = p.head_dim, by_column = packed_size(d, p.keys), by_row = packed_size(p.keys, d);
  Scratch scratch(2 * by_column + by_row + 2 * p.keys * d + QueryBlockBackward<T>::scratch_size(d));
  const PackedKeys packed{scratch.take(by_column), scratch.take(by_column), scratch.take(by_row)};
  pack_all(p.k, p.kv_stride, /*by_columns=*/true, d, p.keys, packed.keys_by_column);
  pack_all(p.v, p.kv_stride, /*by_columns=*/true, d, p.keys, packed.values_by_column);
  pack_all(p.k, p.kv_stride, /*by_columns=*/false, p.keys, d, packed.keys_by_row);
  float* dk_sum = scratch.take(p.keys * d);
  float* dv_sum = scratch.take(p.keys * d);
  std::fill_n(dk_sum, p.keys * d, 0.0F);
  std::fill_n(dv_sum, p.keys * d, 0.0F);
  QueryBlockBackward<T> block(p, packed, scratch);
  for (int64_t g = 0; g < group; ++g) {
    for (int64_t i0 = 0; i0 < p.queries; i0 += kQueryBlock) {
      block.run(i0, p.q + g * d, dout + g * d, out + g * d, lse + g * p.queries, dq + g * d, dk_sum,
                dv_sum);
    }
  }
  narrow_rows(dk_sum, p.keys, d, dk, p.kv_stride);
  narrow_rows(dv_sum, p.keys, d, dv, p.kv_stride);
}

template <class T>
AttentionKernels<T> attention_kernels() {
  return {attention_forward<T>, attention_backward<T>};
}

}  // namespace CPU_CAPABILITY
}  // namespace assay::fused
