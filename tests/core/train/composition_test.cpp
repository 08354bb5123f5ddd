// The seams compose: recompute, I and W, microbatches and evaluation give the plain run's bits.
#include <ATen/core/Tensor.h>

#include <cmath>

#include "recipes.h"

namespace assay::train {
namespace {

nlohmann::json with(const std::string& section, nlohmann::json value) {
  auto config = small_config();
  config[section] = std::move(value);
  return config;
}

class SameBits : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(SameBits, AsTheRunThatKeepsEverything) {
  const auto& [memory, precision] = GetParam();
  auto plain_config = with("precision", {{"name", precision}});
  auto config = plain_config;
  config["memory"] = {{"name", memory}};
  auto plain = make_trainer(plain_config);
  auto tested = make_trainer(config);
  EXPECT_EQ(run_steps(*tested, 5), run_steps(*plain, 5));
  EXPECT_EQ(weight_difference(*tested, *plain), 0.0);
  EXPECT_GT(tested->assembly().counters["recompute.blocks"], 0);
}

INSTANTIATE_TEST_SUITE_P(Memory, SameBits,
                         testing::Combine(testing::Values("full", "selective_layer",
                                                          "selective_op"),
                                          testing::Values("fp64", "fp32", "bf16")));

// F0 I0 F1 I1 W0 W1 instead of F0 B0 F1 B1.
ActionList split_schedule() {
  ActionList list;
  for (const char* text : {"0F0", "0I0", "0F1", "0I1", "0W0", "0W1", "0REDUCE_GRAD"}) {
    list.push_back(parse_action(text));
  }
  return list;
}

TEST(Composition, InputAndWeightGradientsApartGiveTheBitsOfBackward) {
  auto plain = make_trainer(small_config());
  load_test_plugins();
  auto assembly =
      assemble(make_recipe(with("memory", {{"name", "selective_op"}})), 0, {}, at::kCPU);
  assembly->pipeline.actions = {split_schedule()};
  Trainer split(std::move(assembly));
  EXPECT_EQ(run_steps(split, 3), run_steps(*plain, 3));
  EXPECT_EQ(weight_difference(split, *plain), 0.0);
}

TEST(Composition, MicrobatchesChangeOnlyTheOrderOfSums) {
  auto config = small_config();
  auto two = make_trainer(config);
  config["train"]["micro_batch"] = 4;
  auto one = make_trainer(config);
  const auto a = run_steps(*two, 5), b = run_steps(*one, 5);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i].first / b[i].first, 1.0, 1e-10) << "step " << i;
    EXPECT_NEAR(a[i].second / b[i].second, 1.0, 1e-10) << "step " << i;
  }
}

TEST(Composition, TwoRunsOfOneCellAreEqualInBits) {
  auto a = make_trainer(small_config()), b = make_trainer(small_config());
  EXPECT_EQ(run_steps(*a, 3), run_steps(*b, 3));
}

TEST(Composition, AnotherSeedIsAnotherRun) {
  auto a = make_trainer(small_config()), b = make_trainer(with("seed", 2));
  EXPECT_NE(run_steps(*a, 1), run_steps(*b, 1));
}

TEST(Composition, EvaluationChangesNothing) {
  auto a = make_trainer(small_config()), b = make_trainer(small_config());
  run_steps(*a, 2);
  run_steps(*b, 2);
  EXPECT_GT(b->evaluate(1).loss, 0.0);
  EXPECT_EQ(a->step(2).loss, b->step(2).loss);
}

TEST(Composition, SelectivePolicyKeepsEverySecondLinearWeightAndAttention) {
  auto trainer = make_trainer(with("memory", {{"name", "selective_op"}}));
  run_steps(*trainer, 1);
  // Two layers, two microbatches: 4 of 7 linear outputs, and attention's two outputs.
  EXPECT_EQ(trainer->assembly().counters["recompute.kept"], 2 * 2 * (4 + 2));
}

TEST(Composition, LossStartsWhereTheInitialisationPredicts) {
  auto config = small_config();
  config["model"] = {{"name", "llama3"}, {"flavour", "tiny"}, {"seq_len", 256}};
  config["precision"] = {{"name", "fp32"}};
  config["train"]["global_batch"] = 8;
  config["train"]["micro_batch"] = 8;
  auto trainer = make_trainer(config);
  const double vocabulary = static_cast<double>(trainer->assembly().recipe.model->vocabulary());
  EXPECT_NEAR(trainer->step(0).loss, std::log(vocabulary) + 0.5, 0.1);
}

}  // namespace
}  // namespace assay::train
