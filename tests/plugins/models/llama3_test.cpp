// llama3's mathematics: gradients against differences, causality, positions, masks, first loss.
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "assay/rank_context.h"
#include "llama3.h"
#include "tests/plugins/support/model_harness.h"

namespace assay::models {
namespace {

using test::ModelHarness;
using test::Random;

constexpr int64_t kVocab = 37;

/// Two layers, small enough for differences: hidden 24, 3 heads of 8, 1 kv head, ffn 40.
Llama3Options small_options() {
  Llama3Options options;
  options.hidden = 24;
  options.layers = 2;
  options.heads = 3;
  options.kv_heads = 1;
  options.ffn = 40;
  return options;
}

Llama3 bound(const Llama3Options& options, int64_t vocabulary = kVocab) {
  Llama3 model(options);
  model.bind({vocabulary});
  return model;
}

BlockInput batch(uint64_t seed, int64_t rows, int64_t seq_len, int64_t vocab = kVocab) {
  Random random(seed);
  BlockInput input;
  input.ids = random.ids({rows, seq_len}, vocab);
  input.labels = random.ids({rows, seq_len}, vocab);
  return input;
}

/// Gradients of every parameter along one random direction against a central difference.
void check_gradients(const Llama3Options& options) {
  const Llama3 model = bound(options);
  ModelHarness harness(model, at::kDouble);
  const auto ops = make_eager_ops();
  BlockInput input = batch(3, 2, 7);
  input.labels[0][2] = -100;  // an ignored label
  harness.loss(*ops, input).backward();
  Random random(11);
  constexpr double h = 1e-5;
  for (size_t i = 0; i < harness.specs().size(); ++i) {
    Tensor& weight = harness.tensors()[i];
    const Tensor start = weight, direction = random.normal(harness.specs()[i].shape, at::kDouble);
    weight = start.add(direction, h);
    const double above = harness.loss(*ops, input).item<double>();
    weight = start.sub(direction, h);
    const double below = harness.loss(*ops, input).item<double>();
    weight = start;
    const double expected = (above - below) / (2 * h);
    const double found = harness.gradient(i).mul(direction).sum().item<double>();
    EXPECT_NEAR(found, expected, 1e-6 * std::max(1.0, std::abs(expected)))
        << harness.specs()[i].name;
  }
}

/// Writes down the weights that linear() is called with.
class CallOrder final : public OpsLayer {
 public:
  using OpsLayer::OpsLayer;
  Tensors linear(const Tensor& x, std::span<const Weight> weights) override {
    calls.emplace_back();
    for (const Weight& w : weights) calls.back().push_back(w.spec().name);
    return next().linear(x, weights);
  }
  std::vector<std::vector<std::string>> calls;
};

}  // namespace

TEST(Llama3, GradientsEqualDifferences) { check_gradients(small_options()); }

TEST(Llama3, GradientsOfATiedModelEqualDifferences) {
  Llama3Options options = small_options();
  options.tied = "true";
  check_gradients(options);
}

TEST(Llama3, CallOrderOfLinearWeightsIsTheRecipes) {
  Llama3Options options = small_options();
  options.layers = 1;
  const Llama3 model = bound(options);
  ModelHarness harness(model, at::kFloat);
  CallOrder order(make_eager_ops());
  harness.loss(order, batch(1, 1, 4));
  const std::string at = "model.layers.0.self_attn.", mlp = "model.layers.0.mlp.";
  const std::vector<std::vector<std::string>> expected = {
      {at + "q_proj.weight", at + "k_proj.weight", at + "v_proj.weight"},
      {at + "o_proj.weight"},
      {mlp + "gate_proj.weight", mlp + "up_proj.weight"},
      {mlp + "down_proj.weight"}};
  EXPECT_EQ(order.calls, expected);
}

TEST(Llama3, ATokenDoesNotChangeWhatComesBefore) {
  const Llama3 model = bound(small_options());
  ModelHarness harness(model, at::kFloat);
  const auto ops = make_eager_ops();
  const BlockInput input = batch(5, 1, 12);
  BlockInput changed = input;
  changed.ids = input.ids.clone();
  changed.ids[0][7] = (input.ids[0][7].item<int64_t>() + 1) % kVocab;
  const Tensor before = harness.hidden(*ops, input), after = harness.hidden(*ops, changed);
  EXPECT_TRUE(before.narrow(1, 0, 7).equal(after.narrow(1, 0, 7)));
  EXPECT_FALSE(before.narrow(1, 7, 5).equal(after.narrow(1, 7, 5)));
}

TEST(Llama3, OnlyDifferencesOfPositionsMatter) {
  Llama3Options options = small_options();
  const Llama3 model = bound(options);
  ModelHarness harness(model, at::kDouble);
  const auto ops = make_eager_ops();
  BlockInput input = batch(5, 1, 12);
  const Tensor at_zero = harness.hidden(*ops, input);
  input.positions.begin = 1000;
  const Tensor shifted = harness.hidden(*ops, input);
  EXPECT_LT(at_zero.sub(shifted).abs().max().item<double>(), 1e-9);
  input.positions = {.ids = at::full({1, 12}, 3, at::kLong)};  // all at one place: another model
  EXPECT_GT(at_zero.sub(harness.hidden(*ops, input)).abs().max().item<double>(), 1e-6);
}

TEST(Llama3, RopeScalingIsPartOfTheModel) {
  Llama3Options options = small_options();
  const auto ops = make_eager_ops();
  BlockInput input = batch(5, 1, 12);
  const auto hidden = [&](const char* scaling) {
    options.rope_scaling = scaling;
    const Llama3 model = bound(options);
    ModelHarness harness(model, at::kDouble);
    return harness.hidden(*ops, input);
  };
  EXPECT_GT(hidden("llama").sub(hidden("none")).abs().max().item<double>(), 1e-12);
}

TEST(Llama3, AZeroHeadPredictsEveryIdEqually) {
  const Llama3 model = bound(small_options());
  ModelHarness harness(model, at::kDouble);
  harness.tensor("lm_head.weight").zero_();
  const auto ops = make_eager_ops();
  const double loss = harness.loss(*ops, batch(9, 2, 8)).item<double>() / 16;
  EXPECT_NEAR(loss, std::log(37.0), 1e-14);
}

TEST(Llama3, FirstLossFollowsFromTheInitialisation) {
  Llama3Options options;  // tiny
  const Llama3 model = bound(options, 272);
  const auto ops = make_eager_ops();
  double mean = 0;
  constexpr int seeds = 3;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    ModelHarness harness(model, at::kFloat, seed);
    mean += harness.loss(*ops, batch(seed, 8, 256, 272)).item<double>() / 2048 / seeds;
  }
  // ln V + 0.48 over 20 seeds, one seed scatters by 0.02: four deviations of a mean of three.
  EXPECT_NEAR(mean, std::log(272.0) + 0.48, 4 * 0.02 / std::sqrt(seeds));
}

TEST(Llama3, PackedDocumentsCostWhatSeparateOnesDo) {
  Llama3Options options = small_options();
  options.mask = "document";
  const Llama3 model = bound(options);
  ModelHarness harness(model, at::kDouble);
  const auto ops = make_eager_ops();
  BlockInput packed = batch(13, 1, 10);
  packed.documents = std::make_shared<Documents>(Documents{{{0, 4, 9}}});
  packed.positions.ids = at::tensor({0, 1, 2, 3, 0, 1, 2, 3, 4, 0}, at::kLong).view({1, 10});
  double separate = 0;
  for (const auto& [begin, size] : {std::pair{0, 4}, {4, 5}, {9, 1}}) {
    BlockInput document;
    document.ids = packed.ids.narrow(1, begin, size);
    document.labels = packed.labels.narrow(1, begin, size);
    separate += harness.loss(*ops, document).item<double>();
  }
  EXPECT_NEAR(harness.loss(*ops, packed).item<double>(), separate, 1e-10 * separate);
}

TEST(Llama3, RunsOnMeta) {
  const Llama3 model = bound(small_options());
  ModelHarness harness(model, at::kFloat);
  for (Tensor& t : harness.tensors()) t = t.to(at::kMeta);
  harness.reset();
  BlockInput input = batch(1, 2, 8);
  input.ids = input.ids.to(at::kMeta);
  input.labels = input.labels.to(at::kMeta);
  const Tensor loss = harness.loss(*make_eager_ops(), input);
  loss.backward();
  EXPECT_TRUE(loss.is_meta());
}

}  // namespace assay::models
