// Sizes, layers, costs and refusals of moe against the papers' and closed forms.
#include <gtest/gtest.h>

#include <algorithm>

#include "moe.h"

namespace assay::models {
namespace {

constexpr int64_t kByteVocabulary = 272;

Moe made(const MoeOptions& options) {
  Moe model(options);
  model.bind({kByteVocabulary});
  return model;
}

MoeOptions flavour(const char* name) {
  MoeOptions options;
  options.flavour = name;
  return options;
}

/// Parameters, and those that one token meets.
std::pair<int64_t, int64_t> counts(const MoeOptions& options) {
  const Mixture m = mixture(options);
  int64_t all = 0, active = 0;
  for (const ParameterSpec& spec : made(options).parameters()) {
    const int64_t numel = whole(spec.shape).numel();
    const bool expert = spec.axes[0].axis == Axis::expert;
    all += numel;
    active += expert ? numel / m.experts * options.top_k : numel;
  }
  return {all, active};
}

/// What prepare() refuses these options with.
std::string refusal(const MoeOptions& options) {
  Moe model = made(options);
  const std::vector<BlockSpec> blocks = model.blocks();
  try {
    model.prepare({.blocks = blocks});
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::vector<int64_t> mixture_layers(const MoeOptions& options) {
  std::vector<int64_t> layers;
  for (int64_t l = 0; l < dimensions(options).layers; ++l) {
    if (is_mixture(options, l)) layers.push_back(l);
  }
  return layers;
}

}  // namespace

TEST(Moe, HasThePublishedParameterCounts) {
  EXPECT_EQ(counts(flavour("tiny")), std::pair(2'630'784l, 861'312l));
  EXPECT_EQ(counts(flavour("debug")), std::pair(16'792'832l, 6'176'000l));
  EXPECT_EQ(counts(flavour("8x7B")), std::pair(46'702'792'704l, 12'879'925'248l));
}

TEST(Moe, SmallFlavoursCostLlama3AndTheRouters) {
  EXPECT_EQ(counts(flavour("tiny")).second, 857'216 + 4 * 8 * 128);
  EXPECT_EQ(counts(flavour("debug")).second, 6'163'712 + 6 * 8 * 256);
}

TEST(Moe, FlopsAreThoseOfTheActiveParameters) {
  const MoeOptions options = flavour("debug");
  const double scores = 12.0 * 6 * 256 * 2048, embedding = 2048.0 * 256;
  const Flops flops = made(options).flops_per_token(2048);
  EXPECT_DOUBLE_EQ(flops.at("tt"), 6 * (6'176'000 - embedding) + scores);
  EXPECT_DOUBLE_EQ(flops.at("palm"), 6.0 * 6'176'000 + scores);
  EXPECT_DOUBLE_EQ(flops.at("causal_half"), 6 * (6'176'000 - embedding) + scores / 2);
}

TEST(Moe, LayersWithExperts) {
  MoeOptions options;
  EXPECT_EQ(mixture_layers(options), (std::vector<int64_t>{0, 1, 2, 3}));
  options.moe_layers = "every_n";
  EXPECT_EQ(mixture_layers(options), (std::vector<int64_t>{1, 3}));
  options.moe_every = 3;
  EXPECT_EQ(mixture_layers(options), (std::vector<int64_t>{2}));
  options.moe_layers = "first_dense";
  EXPECT_EQ(mixture_layers(options), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(made(options).facts().at("moe_layers"), 3);
}

TEST(Moe, DenseLayersAndSharedExpertsAreCounted) {
  MoeOptions options;
  const auto [all, active] = counts(options);
  options.moe_layers = "first_dense";  // one layer of 3 * 128 * 384 for 8 experts and a router
  EXPECT_EQ(counts(options).first, all - 8 * 3 * 128 * 192 - 8 * 128 + 3 * 128 * 384);
  options.moe_layers = "all";
  options.shared_experts = 2;
  EXPECT_EQ(counts(options).first, all + 4 * 2 * 3 * 128 * 192);
  EXPECT_EQ(counts(options).second, active + 4 * 2 * 3 * 128 * 192);
}

TEST(Moe, ExpertsAreTheFirstDimensionOfOneParameter) {
  MoeOptions options;
  options.shared_experts = 1;
  const auto parameters = made(options).parameters();
  const std::vector<std::string> names = {
      "gate.weight",
      "experts.gate_proj.weight",
      "experts.up_proj.weight",
      "experts.down_proj.weight",
      "shared_experts.gate_proj.weight",
      "shared_experts.up_proj.weight",
      "shared_experts.down_proj.weight",
  };
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(parameters[7 + i].name, "model.layers.0.mlp." + names[i]);
  }
  EXPECT_EQ(parameters[7].role, ParameterRole::router);
  EXPECT_EQ(ParameterPlacement(parameters[7]).shard_group(), MeshGroup::fsdp);
  EXPECT_EQ(parameters[8].shape, (Shape{8, 192, 128}));
  EXPECT_EQ(ParameterPlacement(parameters[8]).shard_group(), MeshGroup::efsdp);
  EXPECT_EQ(parameters[10].shape, (Shape{8, 128, 192}));
  EXPECT_EQ(ParameterPlacement(parameters[11]).shard_group(), MeshGroup::fsdp);
}

TEST(Moe, BlocksUseEveryParameterInOrder) {
  MoeOptions options;
  options.moe_layers = "every_n";
  options.shared_experts = 1;
  const Moe model = made(options);
  std::vector<int> used;
  for (const BlockSpec& block : model.blocks()) {
    used.insert(used.end(), block.weights.begin(), block.weights.end());
  }
  ASSERT_EQ(used.size(), model.parameters().size());
  for (size_t i = 0; i < used.size(); ++i) EXPECT_EQ(used[i], static_cast<int>(i));
}

TEST(Moe, NormalisesGatesAsMixtralDoesUnlessToldOtherwise) {
  MoeOptions options;
  EXPECT_TRUE(route_spec(options).normalise);
  options.top_k = 1;
  EXPECT_FALSE(route_spec(options).normalise);
  options.top_k = 2;
  options.score = "sigmoid";
  EXPECT_FALSE(route_spec(options).normalise);
  options.route_norm = "true";
  EXPECT_TRUE(route_spec(options).normalise);
}

TEST(Moe, SaysThatExpertsAreForced) {
  MoeOptions options;
  EXPECT_EQ(made(options).facts().at("force_balance"), 0);
  options.force_balance = true;
  EXPECT_EQ(made(options).facts().at("force_balance"), 1);
}

TEST(Moe, RefusesChoicesThatAreNone) {
  MoeOptions options;
  options.top_k = 9;
  EXPECT_NE(refusal(options).find("[R-TOPK]"), std::string::npos);
  options.top_k = 3;
  options.groups = 3;
  EXPECT_NE(refusal(options).find("[R-GROUPS]"), std::string::npos);  // 8 mod 3
  options.groups = 8;
  EXPECT_NE(refusal(options).find("[R-GROUPS]"), std::string::npos);  // groups of one
  options.groups = 4;
  EXPECT_NE(refusal(options).find("[R-GROUPS]"), std::string::npos);  // 3 of one group of 2
  options.limited_groups = 2;
  EXPECT_EQ(refusal(options), "accepted");
  options.limited_groups = 5;
  EXPECT_NE(refusal(options).find("[R-GROUPS]"), std::string::npos);
}

}  // namespace assay::models
