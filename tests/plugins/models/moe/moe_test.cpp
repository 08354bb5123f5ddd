// moe's mathematics: gradients against differences, shared experts, recomputable counts.
#include <ATen/Parallel.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "assay/rank_context.h"
#include "moe.h"
#include "tests/plugins/support/model_harness.h"

namespace assay::models {
namespace {

using test::ModelHarness;
using test::Random;

constexpr int64_t kVocab = 37;

/// Products of this size gain nothing from a second thread.
const bool kOneThread = (at::set_num_threads(1), true);

MoeOptions small_options() {
  MoeOptions options;
  options.hidden = 24;
  options.layers = 2;
  options.heads = 3;
  options.kv_heads = 1;
  options.ffn = 40;
  options.experts = 4;
  options.expert_ffn = 20;
  options.shared_experts = 1;
  options.moe_layers = "first_dense";
  return options;
}

Moe bound(const MoeOptions& options) {
  Moe model(options);
  model.bind({kVocab});
  return model;
}

BlockInput batch(uint64_t seed, int64_t rows, int64_t seq_len) {
  Random random(seed);
  BlockInput input;
  input.ids = random.ids({rows, seq_len}, kVocab);
  input.labels = random.ids({rows, seq_len}, kVocab);
  return input;
}

/// Gradients of every parameter along one random direction against a central difference of the
/// loss plus `losses`, what balancing adds to it.
void check_gradients(Moe& model, const std::function<double()>& losses, int64_t microbatch) {
  ModelHarness harness(model, at::kDouble);
  const auto ops = make_eager_ops();
  BlockInput input = batch(3, 2, 9);
  input.microbatch = microbatch;
  harness.loss(*ops, input).backward();
  losses();
  Random random(11);
  constexpr double h = 1e-6;
  for (size_t i = 0; i < harness.specs().size(); ++i) {
    Tensor& weight = harness.tensors()[i];
    const Tensor start = weight, direction = random.normal(harness.specs()[i].shape, at::kDouble);
    const auto value = [&](double step) {
      weight = start.add(direction, step);
      const double loss = harness.loss(*ops, input).item<double>();
      return loss + losses();
    };
    const double expected = (value(h) - value(-h)) / (2 * h);
    weight = start;
    const double found = harness.gradient(i).mul(direction).sum().item<double>();
    EXPECT_NEAR(found, expected, 1e-6 * std::max(1.0, std::abs(expected)))
        << harness.specs()[i].name;
  }
}

/// A model prepared as the only rank of a run, and what its hook reports.
struct Prepared {
  explicit Prepared(const MoeOptions& options, int64_t microbatches = 1, int64_t token_ranks = 1)
      : model(bound(options)), blocks(model.blocks()) {
    model.prepare({.blocks = blocks, .microbatches = microbatches, .token_ranks = token_ranks});
  }
  std::map<std::string, double> step(const std::function<void(Tensor&)>& sum = [](Tensor&) {}) {
    std::map<std::string, double> metrics;
    model.before_update({.sum = sum, .metrics = metrics});
    return metrics;
  }
  Moe model;
  std::vector<BlockSpec> blocks;
};

}  // namespace

TEST(Moe, GradientsEqualDifferences) {
  Moe model = bound(small_options());
  check_gradients(
      model, [] { return 0.0; }, -1);
}

TEST(Moe, GradientsWithSigmoidAndGroupsEqualDifferences) {
  MoeOptions options = small_options();
  options.score = "sigmoid";
  options.groups = 2;
  options.limited_groups = 1;
  options.route_scale = 2.5;
  Moe model = bound(options);
  check_gradients(
      model, [] { return 0.0; }, -1);
}

/// The losses of balancing reach the router and everything below it, with the share of a
/// microbatch of a rank.
TEST(Moe, GradientsOfTheBalancingLossesEqualDifferences) {
  MoeOptions options = small_options();
  options.moe_layers = "all";
  options.score = "sigmoid";
  options.balance = "aux";
  options.aux_weight = 3.0;
  options.z_weight = 0.5;
  Prepared p(options, /*microbatches=*/2, /*token_ranks=*/3);
  check_gradients(
      p.model,
      [&] {
        const auto metrics = p.step();
        return metrics.at("moe_aux_loss") + metrics.at("moe_z_loss");
      },
      1);
}

TEST(Moe, TheAuxiliaryLossOfUniformRoutingIsItsWeight) {
  MoeOptions options = small_options();
  options.moe_layers = "all";
  options.balance = "aux";
  options.aux_weight = 0.125;
  options.force_balance = true;
  for (const char* score : {"softmax", "sigmoid"}) {
    options.score = score;
    Prepared p(options);
    ModelHarness harness(p.model, at::kDouble);
    harness.tensor("model.layers.0.mlp.gate.weight").zero_();
    harness.tensor("model.layers.1.mlp.gate.weight").zero_();
    BlockInput input = batch(1, 2, 8);
    input.microbatch = 0;
    harness.loss(*make_eager_ops(), input);
    const auto metrics = p.step();
    EXPECT_DOUBLE_EQ(metrics.at("moe_aux_loss"), 2 * 0.125);  // two layers
    EXPECT_DOUBLE_EQ(metrics.at("moe_load"), 1.0);
  }
}

TEST(Moe, APassOfTheSameMicrobatchCountsOnce) {
  MoeOptions options = small_options();
  options.bias_center = false;
  options.bias_rate = 0.5;
  Prepared once(options), twice(options);
  Tensor seen_once, seen_twice;
  const auto run = [&](Prepared& p, int passes, Tensor& seen) {
    ModelHarness harness(p.model, at::kDouble);
    for (int i = 0; i < passes; ++i) {
      BlockInput input = batch(1, 2, 8);
      input.microbatch = 0;
      harness.loss(*make_eager_ops(), input);
      input.microbatch = -1;  // an evaluation
      harness.loss(*make_eager_ops(), input);
    }
    p.step([&](Tensor& t) { seen = t.clone(); });
  };
  run(once, 1, seen_once);
  run(twice, 2, seen_twice);
  EXPECT_TRUE(seen_once.equal(seen_twice));
  EXPECT_EQ(seen_once.narrow(1, 0, 4).sum().item<double>(), 2 * 16);  // one layer, top 2
}

TEST(Moe, TheBiasOfALayerIsANamedBuffer) {
  MoeOptions options = small_options();
  options.bias_center = false;
  options.bias_rate = 0.5;
  Prepared p(options);
  const std::string name = "model.layers.1.mlp.gate.e_score_correction_bias";
  ASSERT_EQ(p.model.buffers().size(), 1u);  // layer 0 is dense
  EXPECT_TRUE(p.model.buffers().at(name).equal(at::zeros({4}, at::kDouble)));
  p.step([](Tensor& t) { t.narrow(1, 0, 4).copy_(at::tensor({1.0, 2.0, 3.0, 2.0})); });
  const Tensor bias = p.model.buffers().at(name);
  EXPECT_TRUE(bias.equal(at::tensor({0.5, 0.0, -0.5, 0.0}, at::kDouble)));
  bias.fill_(7);  // as loading a checkpoint does
  EXPECT_EQ(p.model.buffers().at(name).sum().item<double>(), 28);
  options.balance = "none";
  EXPECT_TRUE(Prepared(options).model.buffers().empty());
}

TEST(Moe, CentredChangesOfTheBiasSumToZero) {
  MoeOptions options = small_options();
  options.bias_rate = 0.5;
  Prepared p(options);
  p.step([](Tensor& t) { t.narrow(1, 0, 4).copy_(at::tensor({9.0, 1.0, 1.0, 1.0})); });
  const Tensor expected = at::tensor({-0.75, 0.25, 0.25, 0.25}, at::kDouble);
  EXPECT_TRUE(p.model.buffers().begin()->second.equal(expected));
}

/// A router whose scores never change: 16 experts, top 2, logits of spread 1.5 around fixed logits
/// of the experts, of the same spread. Step by step the bias evens out what they get, in fewer
/// steps than it needs to move by 1; ten times the step settles in a wider band.
TEST(Moe, ABiasBalancesAStaticSkewedRouter) {
  for (const auto& [rate, band] : {std::pair{1e-3, 0.1}, {1e-2, 0.2}}) {
    MoeOptions options;
    options.experts = 16;
    options.layers = 1;
    options.score = "sigmoid";
    options.bias_rate = rate;
    const std::vector<BlockSpec> blocks = bound(options).blocks();
    Balance balance(options);
    balance.prepare({.blocks = blocks}, 1, 16);
    Random random(5);
    const Tensor skew = random.normal({1, 16}, at::kDouble).mul(1.5);
    ParameterSpec spec;
    spec.axes.resize(2);
    const ParameterPlacement placement(spec);
    const Tensor logits = random.normal({1024, 16}, at::kDouble).mul(1.5).add(skew);
    const Weight router{&placement, at::eye(16, at::kDouble), {}, nullptr};
    const auto ops = make_eager_ops();
    int64_t steps = 0;
    double load = 0;
    do {
      const Routing r = ops->route(logits, router, balance.bias(0), route_spec(options));
      balance.note(r, 0, 0);
      std::map<std::string, double> metrics;
      balance.update({.sum = [](Tensor&) {}, .metrics = metrics});
      load = metrics.at("moe_load");
      if (++steps == 1) {
        EXPECT_GT(load, 2.0);
      }
    } while (load - 1 >= band && static_cast<double>(steps) < 1 / rate);
    EXPECT_LT(load - 1, band) << "rate " << rate << " after " << steps << " steps";
    RecordProperty("steps_at_" + std::to_string(rate), std::to_string(steps));
  }
}

TEST(Moe, RunsOnMeta) {
  Moe model = bound(small_options());
  const auto blocks = model.blocks();
  model.prepare({.blocks = blocks, .device = at::kMeta});
  ModelHarness harness(model, at::kFloat);
  for (Tensor& t : harness.tensors()) t = t.to(at::kMeta);
  harness.reset();
  BlockInput input = batch(1, 2, 8);
  input.ids = input.ids.to(at::kMeta);
  input.labels = input.labels.to(at::kMeta);
  input.microbatch = 0;
  const Tensor loss = harness.loss(*make_eager_ops(), input);
  loss.backward();
  EXPECT_TRUE(loss.is_meta());
  std::map<std::string, double> metrics;
  model.before_update({.sum = [](Tensor&) {}, .metrics = metrics});
  EXPECT_TRUE(metrics.empty());
}

}  // namespace assay::models
