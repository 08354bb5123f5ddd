// Portable reductions of every dtype, in blocks that stay in the first-level cache.
#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <type_traits>

#include "reduce.h"

namespace assay::comm {
namespace {

constexpr int64_t kBlock = 512;

template <class T>
using Accumulator =
    std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, double>, T, float>;

struct Sum {
  template <class A>
  static A apply(A a, A b) {
    if constexpr (std::is_same_v<A, bool>)
      return a || b;
    else if constexpr (std::is_integral_v<A>) {
      using U = std::make_unsigned_t<A>;  // wraps
      return static_cast<A>(static_cast<U>(a) + static_cast<U>(b));
    } else
      return a + b;
  }
};

struct Max {  // a NaN wins, as in ATen
  template <class A>
  static A apply(A a, A b) {
    return b > a || b != b ? b : a;
  }
};

struct Min {
  template <class A>
  static A apply(A a, A b) {
    return b < a || b != b ? b : a;
  }
};

template <class T, class Op>
void reduce(void* to, const void* const* from, int ranks, int64_t count) {
  using A = Accumulator<T>;
  A total[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    const T* first = static_cast<const T*>(from[0]) + begin;
    for (int64_t i = 0; i < n; ++i) total[i] = static_cast<A>(first[i]);
    for (int rank = 1; rank < ranks; ++rank) {
      const T* next = static_cast<const T*>(from[rank]) + begin;
      for (int64_t i = 0; i < n; ++i) total[i] = Op::apply(total[i], static_cast<A>(next[i]));
    }
    T* out = static_cast<T*>(to) + begin;
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(total[i]);
  }
}

template <class T>
Reduction of_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return reduce<T, Sum>;
    case ReduceOp::max:
      return reduce<T, Max>;
    case ReduceOp::min:
      return reduce<T, Min>;
  }
  return nullptr;
}

}  // namespace

Reduction find_scalar_reduction(at::ScalarType dtype, ReduceOp op) {
  switch (dtype) {
    case at::kDouble:
      return of_op<double>(op);
    case at::kFloat:
      return of_op<float>(op);
    case at::kBFloat16:
      return of_op<c10::BFloat16>(op);
    case at::kHalf:
      return of_op<c10::Half>(op);
    case at::kFloat8_e4m3fn:
      return of_op<c10::Float8_e4m3fn>(op);
    case at::kFloat8_e5m2:
      return of_op<c10::Float8_e5m2>(op);
    case at::kLong:
      return of_op<int64_t>(op);
    case at::kInt:
      return of_op<int32_t>(op);
    case at::kShort:
      return of_op<int16_t>(op);
    case at::kChar:
      return of_op<int8_t>(op);
    case at::kByte:
      return of_op<uint8_t>(op);
    case at::kBool:
      return of_op<bool>(op);
    default:
      return nullptr;
  }
}

}  // namespace assay::comm
