// The operations of mixtures of experts against closed forms and a dense loop over the experts.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <deque>

#include "assay/ops.h"

namespace assay::train {
namespace {

constexpr int64_t kModelWidth = 24, kExpertWidth = 40;

/// Products of this size gain nothing from a second thread.
const bool kOneThread = (at::set_num_threads(1), true);

/// A mixture of experts with weights of its own; gradients are in the sinks.
struct Mixture {
  Mixture(int64_t experts, at::ScalarType dtype, uint64_t seed = 1)
      : generator(at::detail::createCPUGenerator(seed)) {
    add("router", {experts, kModelWidth}, dtype);
    add("w1", {experts, kExpertWidth, kModelWidth}, dtype);
    add("w3", {experts, kExpertWidth, kModelWidth}, dtype);
    add("w2", {experts, kModelWidth, kExpertWidth}, dtype);
  }

  void add(const std::string& name, Shape shape, at::ScalarType dtype) {
    ParameterSpec spec;
    spec.name = name;
    spec.shape = shape;
    spec.axes.resize(shape.size());
    placements.emplace_back(spec);
    weights.push_back({&placements.back(), normal(shape, dtype).mul(0.3), {}, nullptr});
    weights.back().sink = &sinks.emplace_back();
    reset();
  }

  void reset() {
    for (size_t i = 0; i < sinks.size(); ++i) {
      sinks[i].prepare(&step, 1, at::full_like(weights[i].tensor, 7.0), [] {});
    }
  }

  Tensor normal(const Shape& shape, at::ScalarType dtype) {
    return at::randn(shape, generator, at::TensorOptions(dtype));
  }

  Tensor run(const Tensor& x, const RouteSpec& spec, const Tensor& bias = {}) {
    const Routing routing = ops->route(rows_of(x), weights[0], bias, spec);
    return moe(*ops, x, routing, std::span(weights).subspan(1), 16);
  }

  at::Generator generator;
  std::unique_ptr<Ops> ops = make_eager_ops();
  StepState step;
  std::deque<ParameterPlacement> placements;
  std::deque<GradientSink> sinks;
  std::vector<Weight> weights;
};

/// Routing of given logits (T, E): x is the identity, the router their transpose.
Routing route(const Tensor& logits, const RouteSpec& spec, const Tensor& bias = {}) {
  Mixture m(logits.size(1), logits.scalar_type());
  m.weights[0].tensor = logits.t().contiguous();
  return m.ops->route(at::eye(logits.size(0), logits.options()), m.weights[0], bias, spec);
}

Tensor longs(std::initializer_list<int64_t> values, const Shape& shape) {
  return at::tensor(std::vector<int64_t>(values)).view(shape);
}

TEST(Route, ChoosesTheBestAndOfEqualsTheLowestId) {
  const Tensor logits =
      at::tensor({1.0, 3.0, 2.0, 3.0, 5.0, 5.0, 5.0, 5.0}, at::kDouble).view({2, 4});
  const Routing r = route(logits, {.top_k = 2});
  EXPECT_TRUE(r.experts.equal(longs({1, 3, 0, 1}, {2, 2})));
  EXPECT_TRUE(r.counts.equal(longs({1, 2, 0, 1}, {4})));
  EXPECT_TRUE(r.gates.allclose(logits.softmax(-1).gather(1, r.experts), 1e-15));
}

TEST(Route, SoftmaxOrSigmoidNormalisedAndScaled) {
  Mixture m(6, at::kDouble);
  const Tensor x = m.normal({5, kModelWidth}, at::kDouble);
  const Routing soft =
      m.ops->route(x, m.weights[0], {}, {.top_k = 3, .normalise = true, .scale = 2.5});
  EXPECT_TRUE(soft.gates.sum(-1).allclose(at::full({5}, 2.5, at::kDouble), 1e-14));
  const Routing sigmoid = m.ops->route(x, m.weights[0], {}, {.top_k = 3, .sigmoid = true});
  const Tensor expected = x.mm(m.weights[0].tensor.t()).sigmoid();
  EXPECT_TRUE(sigmoid.scores.allclose(expected, 1e-14));
  EXPECT_TRUE(sigmoid.gates.equal(sigmoid.scores.gather(1, sigmoid.experts)));
}

TEST(Route, ABiasChangesChoicesAndNoGate) {
  Mixture m(8, at::kDouble);
  const Tensor x = m.normal({64, kModelWidth}, at::kDouble);
  const Tensor bias = m.normal({8}, at::kDouble).mul(0.1);
  const RouteSpec spec{.top_k = 2, .sigmoid = true};
  const Routing plain = m.ops->route(x, m.weights[0], {}, spec);
  const Routing biased = m.ops->route(x, m.weights[0], bias, spec);
  EXPECT_FALSE(plain.experts.equal(biased.experts));
  EXPECT_TRUE(plain.scores.equal(biased.scores));
  EXPECT_TRUE(biased.gates.equal(plain.scores.gather(1, biased.experts)));
}

TEST(Route, GroupsAreJudgedByTheirTwoBest) {
  // Groups {0 1 2}, {3 4 5}: the second has the best expert, the first the better pair.
  const Tensor logits = at::tensor({2.0, 2.0, -9.0, 3.0, -9.0, -9.0}, at::kDouble).view({1, 6});
  const RouteSpec spec{.top_k = 2, .sigmoid = true, .groups = 2, .limited_groups = 1};
  EXPECT_TRUE(route(logits, spec).experts.equal(longs({0, 1}, {1, 2})));
  RouteSpec both = spec;
  both.limited_groups = 2;
  EXPECT_TRUE(route(logits, both).experts.equal(longs({3, 0}, {1, 2})));
  const Tensor bias = at::tensor({0.0, 0.0, 0.0, 0.0, 1.0, 0.0}, at::kDouble);
  EXPECT_TRUE(route(logits, spec, bias).experts.equal(longs({4, 3}, {1, 2})));  // bias counts
}

TEST(Route, ForcedBalanceIsRoundRobin) {
  Mixture m(8, at::kFloat);
  const Tensor x = m.normal({12, kModelWidth}, at::kFloat);
  const Routing r = m.ops->route(x, m.weights[0], {}, {.top_k = 2, .force_balance = true});
  EXPECT_TRUE(r.experts.flatten().equal(at::arange(24).remainder(8)));
  EXPECT_TRUE(r.counts.equal(at::full({8}, 3, at::kLong)));
  EXPECT_TRUE(r.gates.equal(r.scores.gather(1, r.experts)));
}

TEST(Dispatch, OrdersRowsByExpertTokenAndSlotAndPadsThem) {
  const auto ops = make_eager_ops();
  const Tensor x = at::arange(1, 6, at::kFloat).view({5, 1});
  const Dispatch d = ops->dispatch(x, longs({2, 0, 0, 2, 2, 3, 0, 2, 2, 0}, {5, 2}), 4, 4);
  EXPECT_EQ(d.expert_rows, (std::vector<int64_t>{4, 0, 8, 4}));
  const Tensor expected = at::tensor({1, 2, 4, 5, 1, 2, 3, 4, 5, 0, 0, 0, 3, 0, 0, 0}, at::kFloat);
  EXPECT_TRUE(d.rows.flatten().equal(expected));
  EXPECT_TRUE(d.place.equal(longs({4, 0, 1, 5, 6, 12, 2, 7, 8, 3}, {5, 2})));
}

TEST(Dispatch, RowCountsAroundThePadding) {
  const auto ops = make_eager_ops();
  for (const auto& [tokens, padded] :
       {std::pair<int64_t, int64_t>{0, 0}, {1, 16}, {15, 16}, {16, 16}, {17, 32}}) {
    const Tensor x = at::full({tokens, 3}, 1.0, at::kFloat);
    const Dispatch d = ops->dispatch(x, at::full({tokens, 1}, 1, at::kLong), 3, 16);
    EXPECT_EQ(d.expert_rows, (std::vector<int64_t>{0, padded, 0}));
    EXPECT_EQ(d.rows.sum().item<double>(), 3.0 * static_cast<double>(tokens));
  }
}

/// sum over slots of gate * expert, each expert computed by linear() for every token. T is a
/// multiple of 16.
Tensor dense_loop(Mixture& m, const Tensor& x, const Routing& r) {
  const auto linear = [&](const Tensor& in, size_t i, int64_t e) {
    const Weight w{m.weights[i].placement, m.weights[i].tensor.select(0, e), {}, nullptr};
    return m.ops->linear(in, {&w, 1})[0];
  };
  Tensors outputs;
  for (int64_t e = 0; e < r.scores.size(1); ++e) {
    const Tensor inner = at::silu(linear(x, 1, e)).mul(linear(x, 2, e));
    outputs.push_back(linear(inner, 3, e));
  }
  const Tensor all = at::stack(outputs, 1);  // (T, E, D)
  const auto wide = statistics_dtype(x.scalar_type());
  Tensor sum;
  for (int64_t slot = 0; slot < r.experts.size(1); ++slot) {
    const Tensor index = r.experts.select(1, slot).view({-1, 1, 1}).expand({-1, 1, x.size(1)});
    const Tensor term = all.gather(1, index).squeeze(1).to(wide).mul(r.gates.narrow(1, slot, 1));
    sum = slot == 0 ? term : sum.add(term);
  }
  return sum.to(x.scalar_type());
}

TEST(Moe, HasTheBitsOfADenseLoopOverExperts) {
  const at::NoGradGuard no_grad;
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    Mixture m(8, dtype);
    const Tensor x = m.normal({64, kModelWidth}, dtype);
    const RouteSpec spec{.top_k = 3, .normalise = true};
    const Routing r = m.ops->route(x, m.weights[0], {}, spec);
    EXPECT_TRUE(m.run(x, spec).equal(dense_loop(m, x, r))) << dtype;
  }
}

TEST(Moe, AllExpertsWithEqualGatesGiveTheirMean) {
  Mixture m(4, at::kDouble);
  m.weights[0].tensor.zero_();
  const Tensor x = m.normal({2, 16, kModelWidth}, at::kDouble);
  const Tensor y = m.run(x, {.top_k = 4, .normalise = true});
  Routing all;
  all.scores = at::empty({32, 4}, at::kDouble);
  all.experts = at::arange(4).view({1, 4}).expand({32, 4}).contiguous();
  all.gates = at::full({32, 4}, 0.25, at::kDouble);
  EXPECT_TRUE(rows_of(y).allclose(dense_loop(m, rows_of(x), all), 1e-13, 1e-14));
}

/// Along random directions of the input and of every weight, against a central difference.
TEST(Moe, GradientsEqualDifferences) {
  for (const bool sigmoid : {false, true}) {
    Mixture m(5, at::kDouble);
    const RouteSpec spec{.top_k = 2, .sigmoid = sigmoid, .normalise = true, .scale = 1.5};
    Tensor x = m.normal({21, kModelWidth}, at::kDouble).requires_grad_();
    const Tensor dy = m.normal({21, kModelWidth}, at::kDouble);
    const auto value = [&] { return m.run(x, spec).mul(dy).sum(); };
    value().backward();
    const Tensor dx = x.grad();
    constexpr double h = 1e-6;
    const auto check = [&](Tensor& t, const Tensor& gradient, const std::string& name) {
      const Tensor start = t.detach().clone(),
                   direction = m.normal(start.sizes().vec(), at::kDouble);
      const at::NoGradGuard no_grad;
      t.copy_(start.add(direction, h));
      const double above = value().item<double>();
      t.copy_(start.sub(direction, h));
      const double below = value().item<double>();
      t.copy_(start);
      const double expected = (above - below) / (2 * h);
      const double found = gradient.mul(direction).sum().item<double>();
      EXPECT_NEAR(found, expected, 1e-6 * std::max(1.0, std::abs(expected))) << name;
    };
    check(x, dx, "x");
    for (size_t i = 0; i < m.weights.size(); ++i) {
      check(m.weights[i].tensor, m.sinks[i].total(), m.weights[i].spec().name);
    }
  }
}

TEST(Moe, AnExpertWithoutTokensHasAGradientOfExactlyZero) {
  Mixture m(4, at::kFloat);
  const Tensor x = m.normal({16, kModelWidth}, at::kFloat).requires_grad_();
  const Tensor bias = at::tensor({0.0, 0.0, -100.0, 0.0}, at::kFloat);
  m.run(x, {.top_k = 2}, bias).sum().backward();
  for (size_t w = 1; w < m.weights.size(); ++w) {
    EXPECT_EQ(m.sinks[w].total().select(0, 2).abs().max().item<double>(), 0.0);
    EXPECT_GT(m.sinks[w].total().select(0, 1).abs().max().item<double>(), 0.0);
  }
}

TEST(Moe, NoTokensAreNoError) {
  Mixture m(4, at::kFloat);
  const Tensor x = m.normal({0, kModelWidth}, at::kFloat).requires_grad_();
  const Tensor y = m.run(x, {.top_k = 2});
  EXPECT_EQ(y.sizes(), x.sizes());
  y.sum().backward();
  EXPECT_EQ(m.sinks[1].total().abs().max().item<double>(), 0.0);
}

TEST(Moe, ShapesHoldOnMeta) {
  Mixture m(6, at::kBFloat16);
  for (Weight& w : m.weights) w.tensor = w.tensor.to(at::kMeta);
  m.reset();
  const Tensor x =
      at::empty({2, 10, kModelWidth}, at::TensorOptions(at::kBFloat16).device(at::kMeta));
  const Tensor input = x.requires_grad_();
  const Routing r = m.ops->route(rows_of(input), m.weights[0], {}, {.top_k = 2});
  EXPECT_EQ(r.gates.scalar_type(), at::kFloat);
  const Dispatch d = m.ops->dispatch(rows_of(input), r.experts, 6, 16);
  EXPECT_EQ(d.expert_rows, std::vector<int64_t>(6, 16));  // 40 pairs: 7 7 7 7 6 6
  const Tensor y = m.run(input, {.top_k = 2});
  EXPECT_EQ(y.sizes(), input.sizes());
  y.sum().backward();
  EXPECT_EQ(input.grad().sizes(), input.sizes());
}

}  // namespace
}  // namespace assay::train
