// float8: the three products by recipe, what is converted, and a whole model through it.
#include "float8.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "assay/rank_context.h"
#include "llama3.h"
#include "products.h"
#include "tests/plugins/support/model_harness.h"

namespace assay::precision {
namespace {

using test::Random;

double relative(const Tensor& found, const Tensor& exact) {
  const Tensor reference = exact.to(at::kDouble);
  return found.to(at::kDouble).sub(reference).norm().div(reference.norm()).item<double>();
}

models::Llama3 model_of(const models::Llama3Options& options) {
  models::Llama3 model(options);
  model.bind({64});
  return model;
}

models::Llama3Options small() {
  models::Llama3Options options;
  options.hidden = 32;
  options.layers = 2;
  options.heads = 2;
  options.kv_heads = 1;
  options.ffn = 48;
  return options;
}

/// A rank context around one model, and the float8 stack over the plain ops.
struct Rank {
  explicit Rank(const Model& m, const Float8Options& options) : model(m), float8(options) {
    ops = float8.wrap_ops(make_eager_ops(), context);
  }
  const Model& model;
  Float8 float8;
  Mesh mesh{};
  GroupMap groups{mesh, nullptr};
  std::vector<Parameter> parameters{};
  StepState step{};
  Counters counters{};
  std::vector<BlockSpec> blocks;
  RankContext context{mesh,  groups, model,    float8,   parameters, blocks,
                      false, step,   counters, at::kCPU, 1};
  std::unique_ptr<Ops> ops;
};

std::string refusal(const models::Llama3Options& model_options, const Float8Options& options) {
  try {
    const models::Llama3 model = model_of(model_options);
    Rank rank(model, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST(Float8Products, AreNearTheExactOnes) {
  register_float8_operators();
  Random random(1);
  const Tensor x = random.normal({64, 128}), w = random.normal({96, 128}),
               dy = random.normal({64, 96});
  // Quantising each factor costs 2.6 % (e4m3, 31.6 dB) or 5.3 % (e5m2, 25.6 dB); two add in square.
  for (const auto id : {Float8RecipeId::tensorwise, Float8RecipeId::rowwise}) {
    const bool tensorwise = id == Float8RecipeId::tensorwise;
    const Float8Recipe& recipe = recipe_of(id);
    const double forward = 0.037, backward = tensorwise ? 0.059 : 0.037;
    EXPECT_NEAR(relative(float8_linear(x, {w}, id)[0], x.mm(w.t())), forward, 0.003);
    EXPECT_NEAR(relative(float8_dx(dy, w, recipe), dy.mm(w)), backward, 0.003);
    EXPECT_NEAR(relative(float8_dw(dy, x, recipe), dy.t().mm(x)), backward, 0.003);
  }
}

TEST(Float8Products, ScalesAreTakenAlongTheSummedDimension) {
  register_float8_operators();
  Random random(2);
  Tensor x = random.normal({32, 64}), w = random.normal({16, 64});
  x.select(0, 3).mul_(1e6);  // one loud token: only its own row may suffer
  const auto quiet = [](const Tensor& y) { return y.narrow(0, 4, 28); };
  const Tensor exact = x.mm(w.t());
  const auto error = [&](Float8RecipeId id) {
    return relative(quiet(float8_linear(x, {w}, id)[0]), quiet(exact));
  };
  EXPECT_LT(error(Float8RecipeId::rowwise), 0.05);
  EXPECT_GT(error(Float8RecipeId::tensorwise), 0.5);
}

TEST(Float8, ConvertsLayersAndLeavesTheHead) {
  const models::Llama3 model = model_of(small());
  const Rank rank(model, {});
  EXPECT_EQ(rank.counters.at("float8.converted"), 14);
  EXPECT_FALSE(rank.counters.contains("float8.skipped"));
}

TEST(Float8, SkipsAndListsOddSides) {
  models::Llama3Options options = small();
  options.ffn = 40;
  const models::Llama3 model = model_of(options);
  const Rank rank(model, {});
  EXPECT_EQ(rank.counters.at("float8.converted"), 8);
  EXPECT_EQ(rank.counters.at("float8.skipped"), 6);
  EXPECT_EQ(rank.counters.at("float8.skipped.model.layers.1.mlp.down_proj.weight"), 1);
}

TEST(Float8, FiltersByNameAndRefusesAGlobWithoutMatch) {
  const models::Llama3 model = model_of(small());
  const Rank rank(model, {.filter = {"*.mlp.*"}});
  EXPECT_EQ(rank.counters.at("float8.converted"), 8);
  EXPECT_NE(refusal(small(), {.filter = {"*.mpl.*"}}).find("[R-F8FILTER]"), std::string::npos);
  EXPECT_NE(refusal(small(), {.filter = {"*"}}).find("[R-F8NONE]"), std::string::npos);
  EXPECT_NE(refusal(small(), {.auto_filter_small = true}).find("[R-F8NONE]"), std::string::npos);
}

TEST(Float8, TrainsAModelNearItsBase) {
  const models::Llama3 model = model_of(small());
  Random random(3);
  BlockInput batch;
  batch.ids = random.ids({2, 16}, 64);
  batch.labels = random.ids({2, 16}, 64);
  for (const char* recipe : {"tensorwise", "rowwise", "rowwise_gw_hp"}) {
    Rank rank(model, {.recipe = recipe, .base = "fp32"});
    test::ModelHarness base(model, at::kFloat), eight(model, at::kFloat);
    const Tensor exact = base.loss(*make_eager_ops(), batch), loss = eight.loss(*rank.ops, batch);
    exact.backward();
    loss.backward();
    EXPECT_NE(loss.item<double>(), exact.item<double>()) << recipe;
    EXPECT_NEAR(loss.item<double>(), exact.item<double>(), 0.02 * exact.item<double>()) << recipe;
    for (size_t i = 0; i < base.specs().size(); ++i) {
      EXPECT_LT(relative(eight.gradient(i), base.gradient(i)), 0.25)
          << recipe << " " << base.specs()[i].name;
    }
  }
}

TEST(Float8, HighPrecisionWeightGradientHasTheBitsOfTheBase) {
  const models::Llama3 model = model_of(small());
  Rank rank(model, {.recipe = "rowwise_gw_hp"});
  Random random(4);
  const Tensor x = random.normal({1, 16, 32}).to(at::kBFloat16);
  const Tensor dy = random.normal({1, 16, 32}).to(at::kBFloat16);
  const auto gradient = [&](Ops& ops) {
    test::ModelHarness harness(model, at::kBFloat16);
    const ParameterPlacement placement(harness.specs()[2]);
    StepState step;
    GradientSink sink;
    sink.prepare(&step, 1, at::zeros({32, 32}), [] {});
    const Weight w{&placement, harness.tensors()[2], {}, &sink};
    ops.linear(x.clone().requires_grad_(), {&w, 1})[0].backward(dy);
    return sink.total();
  };
  EXPECT_TRUE(gradient(*rank.ops).equal(gradient(*make_eager_ops())));
}

TEST(Float8, ZeroGradientsGiveZero) {
  const Tensor zero = at::zeros({16, 16}), w = Random(5).normal({16, 16});
  EXPECT_TRUE(float8_dx(zero, w, recipe_of(Float8RecipeId::rowwise)).equal(zero));
}

}  // namespace assay::precision
