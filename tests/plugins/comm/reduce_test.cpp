// The AVX2 reductions give the bits of the portable ones, special values and odd sizes included.
#include "reduce.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collective_checks.h"

namespace assay::comm {
namespace {

using namespace assay::test;  // NOLINT: helpers of this folder

at::Tensor reduced_by(Reduction reduction, const std::vector<at::Tensor>& parts) {
  std::vector<const void*> from;
  for (const at::Tensor& part : parts) from.push_back(part.const_data_ptr());
  at::Tensor to = at::zeros_like(parts[0]);
  reduction(to.mutable_data_ptr(), from.data(), static_cast<int>(from.size()), to.numel());
  return to;
}

class ReduceDtype : public testing::TestWithParam<at::ScalarType> {};

TEST_P(ReduceDtype, FastEqualsPortable) {
  const Reduction fast = find_avx2_reduction(GetParam(), ReduceOp::sum);
  const Reduction portable = find_scalar_reduction(GetParam(), ReduceOp::sum);
  ASSERT_NE(fast, nullptr);
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "needs AVX2, this machine has none";
  for (const int64_t numel : {1, 7, 8, 9, 16, 31, 64, 1001}) {
    const auto parts = inputs_of(5, numel, GetParam());
    require_equal(reduced_by(fast, parts), reduced_by(portable, parts), "sum");
  }
}

TEST_P(ReduceDtype, InfinitiesNansAndTheLargestFiniteRoundAlike) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "needs AVX2, this machine has none";
  const double largest = GetParam() == at::kHalf ? 65504 : 3.3895313892515355e38;
  at::Tensor a = at::zeros({32}, GetParam()), b = at::zeros({32}, GetParam());
  a[0] = std::numeric_limits<double>::infinity();
  a[1] = std::nan("");
  a[9] = largest;
  b[9] = largest;
  a[17] = 1.0;
  b[17] = GetParam() == at::kHalf ? 0.00048828125 : 0.00390625;  // a tie: to even
  const at::Tensor fast = reduced_by(find_avx2_reduction(GetParam(), ReduceOp::sum), {a, b});
  const at::Tensor plain = reduced_by(find_scalar_reduction(GetParam(), ReduceOp::sum), {a, b});
  EXPECT_TRUE(fast.isnan()[1].item<bool>());
  EXPECT_TRUE(at::equal(fast.nan_to_num(), plain.nan_to_num()));
  EXPECT_EQ(fast[17].item<double>(), plain[17].item<double>());
}

INSTANTIATE_TEST_SUITE_P(Sums, ReduceDtype,
                         testing::Values(at::kFloat, at::kDouble, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return dtype_name(info.param); });

TEST(Reduce, ANanWinsMaximaAndMinima) {
  at::Tensor a = at::zeros({3}), b = at::zeros({3});
  a[0] = std::nan("");
  b[1] = std::nan("");
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
    const at::Tensor y = reduced_by(find_scalar_reduction(at::kFloat, op), {a, b});
    EXPECT_TRUE(y[0].isnan().item<bool>());
    EXPECT_TRUE(y[1].isnan().item<bool>());
    EXPECT_EQ(y[2].item<float>(), 0);
  }
}

TEST(Reduce, RefusesADtypeWithoutReduction) {
  EXPECT_THROW((void)find_reduction(at::kComplexFloat, ReduceOp::sum), Error);
}

}  // namespace
}  // namespace assay::comm
