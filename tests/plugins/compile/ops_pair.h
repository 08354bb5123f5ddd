// The same operation through eager and through compile/fused, and the distance between the two.
#pragma once

#include <gtest/gtest.h>

#include "op_stack.h"

namespace assay::fused {

/// Largest difference, relative to the largest value of `expected`.
inline double distance(const Tensor& actual, const Tensor& expected) {
  const Tensor wide = expected.to(at::kDouble);
  const double scale = wide.abs().max().item<double>();
  return actual.to(at::kDouble).sub(wide).abs().max().item<double>() / (scale > 0 ? scale : 1.0);
}

/// Bounds of recipes 6: fp64 num, fp32 1e-6, bf16 2e-2, each relative.
inline double bound(at::ScalarType dtype) {
  if (dtype == at::kDouble) return 1e-10;
  return dtype == at::kFloat ? 1e-6 : 2e-2;
}

/// `body` through compile/fused in each dtype against eager in fp64, outputs and gradients; the
/// inputs are exact in bf16, so that only the arithmetic differs.
inline void expect_equal_to_eager(const std::function<Tensors(OpStack&)>& body, double factor = 1) {
  const Tensors expected = OpStack(false, at::kDouble).run(body);
  for (const auto dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    OpStack bench(true, dtype, /*own_fp32=*/true);
    const Tensors actual = bench.run(body);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_LE(distance(actual[i], expected[i]), factor * bound(dtype))
          << "result " << i << " in " << toString(dtype);
      EXPECT_EQ(actual[i].sizes(), expected[i].sizes());
    }
  }
}

/// One and two threads give the same bits, in every dtype.
inline void expect_bits_for_any_thread_count(const std::function<Tensors(OpStack&)>& body) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto run = [&](int n) {
      const Threads threads(n);
      return OpStack(true, dtype, /*own_fp32=*/true).run(body);
    };
    const Tensors one = run(1), two = run(2);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_TRUE(one[i].equal(two[i])) << "result " << i << " in " << toString(dtype);
    }
  }
}

}  // namespace assay::fused
