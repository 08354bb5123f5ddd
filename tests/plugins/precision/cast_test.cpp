// Casts to 8-bit floats: vectors of codes, scales, and the noise of each scaling.
#include "cast.h"

#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/plugins/support/model_harness.h"

namespace assay::precision {
namespace {

struct Cast {
  int code;
  double value;
};

/// Code and value of `x` cast with scale 1, through the same clamp and rounding as quantise().
Cast cast(double x, const Float8Format& format) {
  const Tensor wide = at::full({1, 1}, x);
  const Tensor codes = wide.clamp(-format.max, format.max).to(format.dtype);
  return {codes.view(at::kByte).item<uint8_t>(), codes.to(at::kFloat).item<double>()};
}

void expect_cast(const Float8Format& format, double x, int code, double value) {
  const Cast found = cast(x, format);
  EXPECT_EQ(found.code, code) << x;
  EXPECT_EQ(found.value, value) << x;
}

double scale(double amax, bool power_of_two) {
  return scale_for(at::full({1, 1}, amax), kE4m3, power_of_two).item<double>();
}

/// 20 log10(|x| / |x - q|), mean over 8 seeds of a 128 x 256 matrix.
double noise_ratio(const Float8Format& format, ScaleScope scope, bool power_of_two,
                   const std::function<void(Tensor&)>& change = {}) {
  double sum = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Tensor x = test::Random(seed).normal({128, 256});
    if (change) change(x);
    const Tensor error = x.sub(dequantise(quantise(x, format, scope, power_of_two)));
    sum += 20 * std::log10(x.norm().item<double>() / error.norm().item<double>());
  }
  return sum / 8;
}

}  // namespace

TEST(Float8Cast, VectorsOfE4m3) {
  expect_cast(kE4m3, 448, 0x7E, 448);
  expect_cast(kE4m3, 464, 0x7E, 448);
  expect_cast(kE4m3, 1e6, 0x7E, 448);
  expect_cast(kE4m3, -1e6, 0xFE, -448);
  expect_cast(kE4m3, 17, 0x58, 16);  // ties to even
  expect_cast(kE4m3, 18, 0x59, 18);
  expect_cast(kE4m3, 19, 0x5A, 20);
  expect_cast(kE4m3, std::ldexp(1, -9), 0x01, std::ldexp(1, -9));
  expect_cast(kE4m3, std::ldexp(1, -10), 0x00, 0);
  expect_cast(kE4m3, std::ldexp(1.01, -10), 0x01, std::ldexp(1, -9));
  expect_cast(kE4m3, std::ldexp(1.5, -9), 0x02, std::ldexp(1, -8));
}

TEST(Float8Cast, VectorsOfE5m2) {
  expect_cast(kE5m2, 61439, 0x7B, 57344);
  expect_cast(kE5m2, 1.125, 0x3C, 1.0);
  expect_cast(kE5m2, 1.375, 0x3E, 1.5);
  expect_cast(kE5m2, std::ldexp(1, -17), 0x00, 0);
}

TEST(Float8Cast, Scales) {
  EXPECT_EQ(scale(0, false), static_cast<double>(4.4799999e14F));
  EXPECT_EQ(scale(0, true), std::ldexp(1, 48));
  EXPECT_EQ(scale(1, false), 448);
  EXPECT_EQ(scale(1, true), 256);
  EXPECT_EQ(scale(3, false), static_cast<double>(149.33333F));
  EXPECT_EQ(scale(3, true), 128);
  EXPECT_EQ(scale(1000, false), static_cast<double>(0.448F));
  EXPECT_EQ(scale(1000, true), 0.25);
  EXPECT_EQ(scale(1.75, true), 256);  // 448 / 1.75 is one already
}

TEST(Float8Cast, ScalesFollowTheScope) {
  const Tensor x = test::Random(3).normal({4, 6});
  EXPECT_EQ(quantise(x, kE4m3, ScaleScope::tensor, false).scale.sizes(), (Shape{1, 1}));
  EXPECT_EQ(quantise(x, kE4m3, ScaleScope::row, false).scale.sizes(), (Shape{4, 1}));
  const Scaled by_column = quantise(x, kE4m3, ScaleScope::column, false);
  EXPECT_EQ(by_column.scale.sizes(), (Shape{1, 6}));
  const Tensor largest = dequantise(by_column).abs().amax({0});
  EXPECT_LT(largest.sub(x.abs().amax({0})).abs().max().item<double>(), 1e-6);
}

TEST(Float8Cast, APowerOfTwoLeavesTheCodes) {
  const Tensor x = test::Random(5).normal({16, 32}), y = x.mul(0.125);
  for (const ScaleScope scope : {ScaleScope::tensor, ScaleScope::row, ScaleScope::column}) {
    for (const bool power_of_two : {false, true}) {
      const auto codes = [&](const Tensor& t) {
        return quantise(t, kE4m3, scope, power_of_two).codes.view(at::kByte);
      };
      EXPECT_TRUE(codes(x).equal(codes(y)));
    }
  }
}

TEST(Float8Cast, SignalToNoiseOfNormalData) {
  using enum ScaleScope;
  EXPECT_NEAR(noise_ratio(kE4m3, tensor, false), 31.56, 0.15);
  EXPECT_NEAR(noise_ratio(kE4m3, row, false), 31.68, 0.15);
  EXPECT_NEAR(noise_ratio(kE4m3, row, true), 31.52, 0.15);
  EXPECT_NEAR(noise_ratio(kE5m2, tensor, false), 25.57, 0.15);
  EXPECT_NEAR(noise_ratio(kE5m2, row, false), 25.68, 0.15);
}

TEST(Float8Cast, RowScalesSurviveAnOutlierColumnTensorScalesAnOutlierRow) {
  using enum ScaleScope;
  const auto loud_column = [](Tensor& x) { x.select(1, 7).mul_(100); };
  const auto loud_row = [](Tensor& x) { x.select(0, 7).mul_(1000); };
  const auto expect_within = [](double found, double low, double high) {
    EXPECT_GE(found, low);
    EXPECT_LE(found, high);
  };
  expect_within(noise_ratio(kE4m3, tensor, false, loud_column), 31.0, 34.3);
  expect_within(noise_ratio(kE4m3, row, false, loud_column), 46.8, 48.3);
  expect_within(noise_ratio(kE4m3, row, true, loud_column), 31.2, 32.3);
  expect_within(noise_ratio(kE5m2, row, false, loud_column), 40.8, 42.3);
  expect_within(noise_ratio(kE4m3, tensor, false, loud_row), 31.1, 32.5);
  expect_within(noise_ratio(kE4m3, row, true, loud_row), 31.0, 32.5);
}

TEST(Float8Cast, ProductIsTheSumOfDecodedCodes) {
  test::Random random(7);
  const Scaled a = quantise(random.normal({8, 32}), kE4m3, ScaleScope::row, true);
  const Scaled b = quantise(random.normal({32, 4}), kE4m3, ScaleScope::column, true);
  const Tensor exact = dequantise(a).to(at::kDouble).mm(dequantise(b).to(at::kDouble));
  EXPECT_LT(product(a, b).sub(exact).abs().max().item<double>(), 1e-5);
}

TEST(Float8Cast, RunsOnMeta) {
  const Tensor x = at::empty({8, 16}, at::TensorOptions(at::kBFloat16).device(at::kMeta));
  const Scaled q = quantise(x, kE4m3, ScaleScope::row, true);
  EXPECT_EQ(q.codes.scalar_type(), at::kFloat8_e4m3fn);
  EXPECT_EQ(product(q, q.t()).sizes(), (Shape{8, 8}));
}

}  // namespace assay::precision
