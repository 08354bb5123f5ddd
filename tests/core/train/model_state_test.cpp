// State that a model moves once per step: kept for checkpoints, the same however forward is run.
#include <ATen/core/Tensor.h>

#include <cmath>

#include "recipes.h"

namespace assay::train {
namespace {

/// Two layers with experts, two microbatches per step.
nlohmann::json experts_config(const std::string& memory = "none") {
  auto config = small_config();
  config["model"]["name"] = "moe";
  config["model"]["expert_ffn"] = 32;
  config["model"]["bias_rate"] = 0.01;
  config["memory"] = {{"name", memory}};
  return config;
}

Tensors kept(Trainer& trainer) {
  Tensors tensors;
  for (const KeptTensor& k : trainer.assembly().kept) tensors.push_back(k.tensor.clone());
  return tensors;
}

TEST(ModelState, IsKeptUnderItsName) {
  auto trainer = make_trainer(experts_config());
  const auto& all = trainer->assembly().kept;
  ASSERT_EQ(all.size(), 2u);
  for (size_t layer = 0; layer < 2; ++layer) {
    EXPECT_EQ(all[layer].name,
              "model/model.layers." + std::to_string(layer) + ".mlp.gate.e_score_correction_bias");
    EXPECT_EQ(all[layer].shape, Shape{8});
    EXPECT_EQ(all[layer].box.size, Shape{8});
    EXPECT_TRUE(all[layer].first_copy);
  }
}

TEST(ModelState, MovesOncePerStep) {
  auto trainer = make_trainer(experts_config());
  const StepResult step = trainer->step(0);
  EXPECT_GE(step.metrics.at("moe_load"), 1.0);
  for (const Tensor& bias : kept(*trainer)) {
    EXPECT_GT(bias.abs().max().item<double>(), 0);
    EXPECT_LT(bias.abs().max().item<double>(), 2 * 0.01);  // one change, its mean taken off
    EXPECT_NEAR(bias.sum().item<double>(), 0, 1e-15);
  }
}

TEST(ModelState, RecomputeCountsNoTokenTwice) {
  for (const char* memory : {"full", "selective_op"}) {
    auto again = make_trainer(experts_config(memory));
    auto reference = make_trainer(experts_config());
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(again->step(i).metrics, reference->step(i).metrics) << memory;
    }
    const Tensors a = kept(*again), b = kept(*reference);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << memory;
  }
}

TEST(ModelState, EvaluationMovesNothing) {
  auto plain = make_trainer(experts_config()), evaluated = make_trainer(experts_config());
  for (int64_t i = 0; i < 3; ++i) {
    plain->step(i);
    evaluated->evaluate(1);
    evaluated->step(i);
  }
  const Tensors a = kept(*plain), b = kept(*evaluated);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i]));
}

TEST(ModelState, AuxiliaryLossesAreNoPartOfTheLoss) {
  auto config = experts_config();
  config["model"]["balance"] = "none";
  auto plain = make_trainer(config);
  config["model"]["balance"] = "aux";
  config["model"]["z_weight"] = 0.001;
  auto losses = make_trainer(config);
  const StepResult a = plain->step(0), b = losses->step(0);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_NE(a.grad_norm, b.grad_norm);
  EXPECT_FALSE(a.metrics.contains("moe_aux_loss"));
  EXPECT_GE(b.metrics.at("moe_aux_loss"), 2 * 0.0099);  // two layers, each near its weight
  EXPECT_GT(b.metrics.at("moe_z_loss"), 0);
}

TEST(ModelState, DenseModelsHaveNone) {
  auto trainer = make_trainer(small_config());
  EXPECT_TRUE(trainer->assembly().kept.empty());
  EXPECT_TRUE(trainer->step(0).metrics.empty());
}

}  // namespace
}  // namespace assay::train
