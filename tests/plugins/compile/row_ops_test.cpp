// Norm, rotary embedding and SwiGLU of compile/fused against eager and against their derivatives.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>

#include "ops_pair.h"

namespace assay::fused {
namespace {

const auto kNorm =
    [](OpStack& b) {  // 333 rows: five runs of partial sums and a rest; 100: no vector
      return Tensors{b.ops().norm(b.input({3, 111, 100}, 1), b.weight({100}, 2), 1e-5)};
    };

const auto kRope = [](OpStack& b) {
  const RopeSpec spec{.head_dim = 24, .theta = 10000};
  return Tensors{b.ops().rope(b.input({2, 19, 3 * 24}, 1), {.begin = 5}, spec)};
};

const auto kSwiglu = [](OpStack& b) {
  const Tensors in{b.input({7, 31, 93}, 1), b.input({7, 31, 93}, 2)};
  return Tensors{b.ops().pointwise(Pointwise::swiglu, in)};
};

TEST(FusedNorm, EqualsEager) { expect_equal_to_eager(kNorm); }
TEST(FusedNorm, HasTheSameBitsForAnyThreadCount) { expect_bits_for_any_thread_count(kNorm); }
TEST(FusedRope, EqualsEager) { expect_equal_to_eager(kRope); }
TEST(FusedSwiglu, EqualsEager) { expect_equal_to_eager(kSwiglu); }
TEST(FusedSwiglu, HasTheSameBitsForAnyThreadCount) { expect_bits_for_any_thread_count(kSwiglu); }

TEST(FusedRope, TakesPositionsOfEachRow) {
  expect_equal_to_eager([](OpStack& b) {
    const Tensor ids = at::arange(2 * 9, at::kLong).view({2, 9}).mul(7).remainder(11);
    return Tensors{b.ops().rope(b.input({2, 9, 2 * 16}, 1), {.ids = ids}, {.head_dim = 16})};
  });
}

TEST(FusedRope, RotatesBackExactlyAsFar) {
  OpStack b(true, at::kDouble);
  const Tensor x = b.draw({1, 6, 32}, 1), angles = b.draw({6, 16}, 2);
  const Tensor there = call_rope(x, angles.cos(), angles.sin(), false);
  EXPECT_LE(distance(call_rope(there, angles.cos(), angles.sin(), true), x), 1e-14);
  EXPECT_GT(distance(there, x), 0.1);
}

/// (f(x + h) - f(x - h)) / 2h along `direction`, of the sum of f's output times `weights`.
double slope(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
             const Tensor& direction, const Tensor& weights) {
  constexpr double kStep = 1e-5;
  const auto at = [&](double h) {
    return f(x.add(direction, h)).mul(weights).sum().item<double>();
  };
  return (at(kStep) - at(-kStep)) / (2 * kStep);
}

TEST(FusedNorm, BackwardIsTheDerivative) {
  OpStack b(true, at::kDouble);
  const Tensor x = b.draw({5, 33}, 1), scale = b.draw({33}, 2), dy = b.draw({5, 33}, 3);
  const Tensor along_x = b.draw({5, 33}, 4), along_scale = b.draw({33}, 5);
  const auto rstd = std::get<1>(call_norm(x, scale, 1e-3));
  const auto [dx, dscale] = call_norm_backward(dy, x, scale, rstd);
  const auto of_x = [&](const Tensor& t) { return std::get<0>(call_norm(t, scale, 1e-3)); };
  const auto of_scale = [&](const Tensor& t) { return std::get<0>(call_norm(x, t, 1e-3)); };
  EXPECT_NEAR(dx.mul(along_x).sum().item<double>(), slope(of_x, x, along_x, dy), 1e-6);
  EXPECT_NEAR(dscale.mul(along_scale).sum().item<double>(), slope(of_scale, scale, along_scale, dy),
              1e-6);
}

TEST(FusedSwiglu, BackwardIsTheDerivative) {
  OpStack b(true, at::kDouble);
  const Tensor gate = b.draw({97}, 1), up = b.draw({97}, 2), dy = b.draw({97}, 3);
  const Tensor along = b.draw({97}, 4);
  const auto [dgate, dup] = call_swiglu_backward(dy, gate, up);
  const auto of_gate = [&](const Tensor& t) { return call_swiglu(t, up); };
  const auto of_up = [&](const Tensor& t) { return call_swiglu(gate, t); };
  EXPECT_NEAR(dgate.mul(along).sum().item<double>(), slope(of_gate, gate, along, dy), 1e-6);
  EXPECT_NEAR(dup.mul(along).sum().item<double>(), slope(of_up, up, along, dy), 1e-6);
}

TEST(FusedSwiglu, SaturatesWithoutNan) {
  register_operators();
  const Tensor gate = at::empty({4}, at::kFloat), up = gate.new_full({4}, 2.0);
  const std::array<float, 4> values{-200.0F, -88.0F, 88.0F, 200.0F};
  std::copy(values.begin(), values.end(), gate.mutable_data_ptr<float>());
  const Tensor y = call_swiglu(gate, up);
  EXPECT_NEAR(y[0].item<float>(), 0.0F, 1e-30F);
  EXPECT_EQ(y[2].item<float>(), 176.0F);
  EXPECT_EQ(y[3].item<float>(), 400.0F);
  const auto [dgate, dup] = call_swiglu_backward(up, gate, up);
  EXPECT_FALSE(dgate.isnan().any().item<bool>());
  EXPECT_FALSE(dup.isnan().any().item<bool>());
}

}  // namespace
}  // namespace assay::fused
