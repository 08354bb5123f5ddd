// Matrix products by a register tile of 6 rows and two vectors of columns over a packed B: the
// scheme of Goto and van de Geijn (ACM TOMS 34, 2008), sized for the caches of one core.
#pragma once

#include <array>
#include <cstring>

#include "simd.h"

namespace assay::fused {
inline namespace CPU_CAPABILITY {

constexpr int64_t kTileRows = 6;                // 12 accumulators of 16 registers
constexpr int64_t kPanel = Pair<float>::size;   // columns of a tile and of a packed panel
constexpr int64_t kDepth = 256;                 // k per pass: a panel of it fits in L1
constexpr int64_t kBlockRows = 16 * kTileRows;  // rows of A per pass: they stay in L2

/// Floats between copied rows: their starts fall into different sets of the first-level cache.
constexpr int64_t kRowPadding = 16;

/// Rows of a transposed A that are copied in one go.
constexpr int64_t kLines = 16;

/// C (R x columns) = or += A (R x k) * panel (k x kPanel).
template <int R>
inline void tile(int64_t k, const float* a, int64_t a_row, int64_t a_column, const float* panel,
                 float* c, int64_t c_row, int64_t columns, bool accumulate) {
  using V = Vec<float>;
  std::array<V, R> lo, hi;
#pragma GCC unroll 6
  for (int i = 0; i < R; ++i) lo[i] = hi[i] = V(0.0F);
  for (int64_t p = 0; p < k; ++p) {
    const V b_lo = V::loadu(panel), b_hi = V::loadu(panel + V::size());
#pragma GCC unroll 6
    for (int i = 0; i < R; ++i) {
      const V x(a[i * a_row]);
      lo[i] = at::vec::fmadd(x, b_lo, lo[i]);
      hi[i] = at::vec::fmadd(x, b_hi, hi[i]);
    }
    a += a_column;
    panel += kPanel;
  }
#pragma GCC unroll 6
  for (int i = 0; i < R; ++i, c += c_row) {
    Pair<float> sum{lo[i], hi[i]};
    if (columns == kPanel) {
      if (accumulate) sum = {V::loadu(c) + sum.lo, V::loadu(c + V::size()) + sum.hi};
      store(c, sum);
    } else {
      if (accumulate) {
        const auto old = load_some(c, columns);
        sum = {old.lo + sum.lo, old.hi + sum.hi};
      }
      store_some(c, sum, columns);
    }
  }
}

inline void tile(int64_t rows, int64_t k, const float* a, int64_t a_row, int64_t a_column,
                 const float* panel, float* c, int64_t c_row, int64_t columns, bool accumulate) {
  switch (rows) {
    case 6:
      return tile<6>(k, a, a_row, a_column, panel, c, c_row, columns, accumulate);
    case 5:
      return tile<5>(k, a, a_row, a_column, panel, c, c_row, columns, accumulate);
    case 4:
      return tile<4>(k, a, a_row, a_column, panel, c, c_row, columns, accumulate);
    case 3:
      return tile<3>(k, a, a_row, a_column, panel, c, c_row, columns, accumulate);
    case 2:
      return tile<2>(k, a, a_row, a_column, panel, c, c_row, columns, accumulate);
    default:
      return tile<1>(k, a, a_row, a_column, panel, c, c_row, columns, accumulate);
  }
}

/// Panel of columns [0, columns) of a matrix whose rows are contiguous.
template <class T>
void pack_rows(const T* b, int64_t row, int64_t k, int64_t columns, float* packed) {
  for (int64_t p = 0; p < k; ++p, b += row, packed += kPanel) {
    store(packed, columns == kPanel ? load(b) : load_some(b, columns));
  }
}

/// The same of a matrix whose columns are contiguous (`column` apart).
template <class T>
void pack_columns(const T* b, int64_t column, int64_t k, int64_t columns, float* packed) {
  constexpr int64_t kLanes = Vec<float>::size();
  if (columns < kPanel) std::fill_n(packed, k * kPanel, 0.0F);
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int64_t width = std::min(kLanes, columns - j);
    int64_t p = 0;
    for (; width == kLanes && p + kPanel <= k; p += kPanel) {  // kPanel k's of kLanes columns
      float square[kLanes * kPanel];
      for (int64_t i = 0; i < kLanes; ++i)
        store(square + i * kPanel, load(b + (j + i) * column + p));
      for (int64_t half = 0; half < kPanel; half += kLanes) {
        at::vec::transpose_mxn<float, kLanes, kLanes>(square + half, kPanel,
                                                      packed + (p + half) * kPanel + j, kPanel);
      }
    }
    for (; p < k; ++p) {
      for (int64_t i = 0; i < width; ++i) {
        packed[p * kPanel + j + i] = static_cast<float>(b[(j + i) * column + p]);
      }
    }
  }
}

template <class T>
void pack_panel(const Matrix<T>& b, int64_t k, int64_t columns, float* packed) {
  if (b.column == 1) return pack_rows(b.data, b.row, k, columns, packed);
  pack_columns(b.data, b.column, k, columns, packed);
}

inline int64_t packed_size(int64_t k, int64_t n) { return (n + kPanel - 1) / kPanel * kPanel * k; }

template <class T>
void pack(const Matrix<T>& b, int64_t k, int64_t n, int64_t index, float* packed) {
  const int64_t j = index * kPanel;
  pack_panel<T>({b.data + j * b.column, b.row, b.column}, k, std::min(kPanel, n - j),
                packed + j * k);
}

/// A block of A in the form that tile() reads.
struct BlockOfA {
  const float* data;
  int64_t strip;        ///< distance of kTileRows rows
  int64_t row, column;  ///< inside a strip
};

/// Copies rows [begin, begin + rows) and columns [k0, k0 + k) of A, widened, into `buffer`: rows
/// stay rows, or the rows of a strip lie side by side where A is transposed.
template <class T>
BlockOfA read_block(const Matrix<T>& a, int64_t begin, int64_t rows, int64_t k0, int64_t k,
                    float* buffer) {
  const T* data = a.data + begin * a.row + k0 * a.column;
  if (a.column == 1) {
    const int64_t stride = k + kRowPadding;
    for (int64_t i = 0; i < rows; ++i) {
      for_pairs<float>(k, [&](int64_t p, auto load, auto store) {
        store(buffer + i * stride + p, load(data + i * a.row + p));
      });
    }
    return {buffer, kTileRows * stride, stride, 1};
  }
  // Some rows at a time: reading what was stored just before would wait for the stores.
  float lines[kLines][kBlockRows];
  for (int64_t p0 = 0; p0 < k; p0 += kLines) {
    const int64_t count = std::min(kLines, k - p0);
    for (int64_t p = 0; p < count; ++p, data += a.column) {
      for_pairs<float>(
          rows, [&](int64_t i, auto load, auto store) { store(lines[p] + i, load(data + i)); });
    }
    for (int64_t i = 0; i < rows; i += kTileRows) {
      float* to = buffer + i * k + p0 * kTileRows;
      for (int64_t p = 0; p < count; ++p, to += kTileRows) {
        std::memcpy(to, lines[p] + i, sizeof(float) * kTileRows);
      }
    }
  }
  return {buffer, kTileRows * k, 1, kTileRows};
}

/// The depth of one pass: k cut into equal parts of at most kDepth.
inline int64_t depth_of(int64_t k) {
  const int64_t passes = std::max<int64_t>(1, (k + kDepth - 1) / kDepth);
  return (k + passes - 1) / passes;
}

template <class T>
void multiply_block(const Matrix<T>& a, const float* packed, float* c, int64_t begin, int64_t rows,
                    int64_t k, int64_t n, bool accumulate, float* buffer) {
  const int64_t depth = depth_of(k);
  for (int64_t k0 = 0; k0 < k; k0 += depth) {
    const int64_t part = std::min(depth, k - k0);
    const BlockOfA block = read_block(a, begin, rows, k0, part, buffer);
    for (int64_t j = 0; j < n; j += kPanel) {
      const float* panel = packed + j * k + k0 * kPanel;
      for (int64_t i = 0; i < rows; i += kTileRows) {
        tile(std::min(kTileRows, rows - i), part, block.data + i / kTileRows * block.strip,
             block.row, block.column, panel, c + (begin + i) * n + j, n, std::min(kPanel, n - j),
             accumulate || k0 > 0);
      }
    }
  }
}

template <class T>
void multiply(const Matrix<T>& a, const float* packed, float* c, int64_t begin, int64_t end,
              int64_t k, int64_t n, bool accumulate) {
  alignas(64) float buffer[kBlockRows * (kDepth + kRowPadding)];
  for (int64_t i = begin; i < end; i += kBlockRows) {
    multiply_block(a, packed, c, i, std::min(kBlockRows, end - i), k, n, accumulate, buffer);
  }
}

template <class T>
void round_to(const float* from, T* to, int64_t n) {
  for_pairs<float>(n, [&](int64_t i, auto load, auto store) { store(to + i, load(from + i)); });
}

template <class T>
ProductKernels<T> product_kernels() {
  return {packed_size, kPanel, pack<T>, multiply<T>, round_to<T>};
}

}  // namespace CPU_CAPABILITY
}  // namespace assay::fused
