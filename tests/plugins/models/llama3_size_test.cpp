// llama3's parameter counts, FLOPs, names and refusals against the published tables.
#include <gtest/gtest.h>

#include "assay/error.h"
#include "llama3.h"

namespace assay::models {
namespace {

constexpr int64_t kByteVocabulary = 272;

Llama3 made(Llama3Options options, int64_t vocabulary = kByteVocabulary) {
  Llama3 model(options);
  model.bind({vocabulary});
  return model;
}

Llama3 flavour(const char* name) {
  Llama3Options options;
  options.flavour = name;
  return made(options);
}

int64_t parameter_count(const Model& model) {
  int64_t count = 0;
  for (const ParameterSpec& spec : model.parameters()) count += whole(spec.shape).numel();
  return count;
}

/// What bind() refuses these options with.
std::string refusal(const Llama3Options& options, int64_t vocabulary = kByteVocabulary) {
  try {
    made(options, vocabulary);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST(Llama3, HasThePublishedParameterCounts) {
  EXPECT_EQ(parameter_count(flavour("tiny")), 857'216);
  EXPECT_EQ(parameter_count(flavour("small")), 4'861'184);
  EXPECT_EQ(parameter_count(flavour("medium")), 25'453'056);
  EXPECT_EQ(parameter_count(flavour("debug")), 6'163'712);
  EXPECT_EQ(parameter_count(flavour("1B")), 1'235'814'400);
  EXPECT_EQ(parameter_count(flavour("3B")), 3'212'749'824);
  EXPECT_EQ(parameter_count(flavour("8B")), 8'030'261'248);
  EXPECT_EQ(parameter_count(flavour("70B")), 70'553'706'496);
  EXPECT_EQ(parameter_count(flavour("405B")), 405'853'388'800);
}

TEST(Llama3, WidthsFollowTheRuleOfThePaper) {  // floor(8d/3), times mult, up to a multiple
  const std::map<std::string, std::pair<int64_t, double>> rule = {
      {"tiny", {128, 1}},  {"small", {256, 1}},  {"medium", {256, 1}},
      {"debug", {256, 1}}, {"1B", {1024, 1.5}},  {"3B", {1024, 1.0}},
      {"8B", {1024, 1.3}}, {"70B", {4096, 1.3}}, {"405B", {4096, 1.2}}};
  for (const std::string& name : flavour_names()) {
    Llama3Options options;
    options.flavour = name;
    const Dimensions size = dimensions(options);
    const auto [multiple, times] = rule.at(name);
    const auto width = static_cast<int64_t>(times * static_cast<double>(8 * size.hidden / 3));
    EXPECT_EQ(size.ffn, (width + multiple - 1) / multiple * multiple) << name;
  }
}

TEST(Llama3, FlopsPerTokenOfTheTable) {
  const auto giga = [](const char* name, const char* id) {
    return flavour(name).flops_per_token(8192).at(id) / 1e9;
  };
  EXPECT_NEAR(giga("8B", "tt"), 57.9144, 5e-5);
  EXPECT_NEAR(giga("70B", "tt"), 481.443, 5e-4);
  EXPECT_NEAR(giga("405B", "tt"), 2625.449, 5e-4);
  EXPECT_NEAR(giga("8B", "palm"), 61.0665, 5e-5);
  EXPECT_NEAR(giga("70B", "palm"), 487.747, 5e-4);
  EXPECT_NEAR(giga("405B", "palm"), 2638.058, 5e-4);
  EXPECT_NEAR(giga("8B", "causal_half"), 51.4720, 5e-5);
  EXPECT_NEAR(giga("70B", "causal_half"), 449.230, 5e-4);
  EXPECT_NEAR(giga("405B", "causal_half"), 2523.981, 5e-4);
  EXPECT_EQ(flavour("debug").flops_per_token(2048).at("tt"), 71'585'280);
}

TEST(Llama3, TiedModelsSubtractNoEmbedding) {
  const Llama3 model = flavour("1B");
  const double scores = 12.0 * 16 * 2048 * 1024;
  EXPECT_EQ(model.flops_per_token(1024).at("tt"), 6.0 * 1'235'814'400 + scores);
  EXPECT_EQ(model.blocks().back().weights.back(), 0);  // the head reads the embedding
}

TEST(Llama3, NamesAreThoseOfHuggingFace) {
  const std::vector<std::string> first = {"model.embed_tokens.weight",
                                          "model.layers.0.input_layernorm.weight",
                                          "model.layers.0.self_attn.q_proj.weight",
                                          "model.layers.0.self_attn.k_proj.weight",
                                          "model.layers.0.self_attn.v_proj.weight",
                                          "model.layers.0.self_attn.o_proj.weight",
                                          "model.layers.0.post_attention_layernorm.weight",
                                          "model.layers.0.mlp.gate_proj.weight",
                                          "model.layers.0.mlp.up_proj.weight",
                                          "model.layers.0.mlp.down_proj.weight",
                                          "model.layers.1.input_layernorm.weight"};
  const auto parameters = flavour("tiny").parameters();
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(parameters[i].name, first[i]);
  EXPECT_EQ(parameters[parameters.size() - 2].name, "model.norm.weight");
  EXPECT_EQ(parameters.back().name, "lm_head.weight");
  EXPECT_EQ(parameters.back().role, ParameterRole::head);
}

TEST(Llama3, BlocksUseEveryParameterInOrder) {
  const Llama3 model = flavour("small");
  std::vector<int> used;
  for (const BlockSpec& block : model.blocks()) {
    used.insert(used.end(), block.weights.begin(), block.weights.end());
  }
  ASSERT_EQ(used.size(), model.parameters().size());
  for (size_t i = 0; i < used.size(); ++i) EXPECT_EQ(used[i], static_cast<int>(i));
}

TEST(Llama3, HeadAxesAreCutBetweenHeads) {
  const auto parameters = flavour("tiny").parameters();
  EXPECT_EQ(parameters[2].axes[0].axis, Axis::heads);
  EXPECT_EQ(parameters[2].axes[0].granule, 32);
  EXPECT_EQ(parameters[3].axes[0].axis, Axis::kv_heads);
  EXPECT_EQ(parameters[5].axes[1].axis, Axis::heads);
  EXPECT_EQ(parameters[7].axes[0].axis, Axis::ffn);
  EXPECT_EQ(parameters[9].axes[1].axis, Axis::ffn);
}

TEST(Llama3, InitialStandardDeviationsOfTheRecipe) {
  const auto parameters = flavour("tiny").parameters();
  const auto std_of = [&](size_t i) { return parameters[i].init.std; };
  EXPECT_EQ(std_of(0), 1.0);                               // embedding, normal
  EXPECT_EQ(std_of(2), 0.02);                              // wq
  EXPECT_EQ(std_of(7), 0.02);                              // w1
  EXPECT_DOUBLE_EQ(std_of(5), 0.02 / std::sqrt(2.0));      // wo, layer 0
  EXPECT_DOUBLE_EQ(std_of(9 + 9), 0.02 / std::sqrt(4.0));  // w2, layer 1
  EXPECT_DOUBLE_EQ(parameters.back().init.std, 1 / std::sqrt(128.0));
  EXPECT_EQ(parameters.back().init.cut, 3.0);
  EXPECT_EQ(parameters[1].init.mean, 1.0);  // norm
}

TEST(Llama3, RefusesShapesThatAreNoModel) {
  Llama3Options options;
  options.heads = 3;
  EXPECT_NE(refusal(options).find("[R-HEADS]"), std::string::npos);
  options.head_dim = 32;
  options.kv_heads = 3;
  EXPECT_EQ(refusal(options), "accepted");
  options.kv_heads = 2;
  EXPECT_NE(refusal(options).find("[R-GQA]"), std::string::npos);
  options.kv_heads = 3;
  options.head_dim = 31;
  EXPECT_NE(refusal(options).find("[R-ROPE]"), std::string::npos);
}

TEST(Llama3, ServesTheVocabularyOfTheDataOrRefuses) {
  Llama3Options options;
  EXPECT_EQ(made(options).vocabulary(), kByteVocabulary);
  EXPECT_NE(refusal(options, 0).find("[R-VOCAB]"), std::string::npos);
  options.vocab = "flavour";
  EXPECT_NE(refusal(options).find("[R-VOCAB]"), std::string::npos);
  options.flavour = "debug";
  EXPECT_EQ(made(options).vocabulary(), 2048);
  EXPECT_NE(refusal(options, 4096).find("below the data's 4096"), std::string::npos);
  options.vocab = "data";
  EXPECT_EQ(made(options, 4096).vocabulary(), 4096);
}

}  // namespace assay::models
