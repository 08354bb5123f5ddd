// Models: single-device code over Ops, driven here by hand with LibTorch's plain kernels.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <numeric>
#include <set>

#include "assay/model.h"
#include "core/conformance/subject.h"

namespace assay::conformance {
namespace {

constexpr int64_t kVocabulary = 64, kBatch = 4, kSeqLen = 32;

int64_t numel(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

/// A small configuration, as far as the model's options allow: flavour tiny and a short row.
std::unique_ptr<Model> small_instance(const Subject& s) {
  OptionValues values = s.defaults().value();
  for (const OptionSpec& spec : s.entry->options) {
    if (spec.name == "seq_len") values["seq_len"] = kSeqLen;
    if (spec.name != "flavour") continue;
    for (const std::string& choice : spec.choices) {
      if (choice == "tiny") values["flavour"] = choice;
    }
  }
  auto model = registry().create<Model>(s.entry->manifest.name, values);
  model->bind({.data_vocabulary = kVocabulary});
  return model;
}

Tensor initial(const ParameterSpec& spec, at::Generator generator) {
  Tensor value = at::empty(spec.shape, at::kFloat);
  if (spec.init.kind == Init::Kind::constant) return value.fill_(spec.init.mean);
  value.normal_(spec.init.mean, spec.init.std, std::move(generator));
  if (spec.init.kind == Init::Kind::truncated_normal) {
    const double cut = spec.init.cut * spec.init.std;
    value.clamp_(spec.init.mean - cut, spec.init.mean + cut);
  }
  return value;
}

/// Weights, sinks and the plain kernels: enough to run a model forward and backward.
class ModelBench {
 public:
  ModelBench(const Subject& s, at::Device device)
      : model_(small_instance(s)), ops_(make_eager_ops()) {
    const auto specs = model_->parameters();
    const auto generator = at::detail::createCPUGenerator(1);
    std::vector<int> uses(specs.size(), 0);
    for (const BlockSpec& block : model_->blocks()) {
      for (const int w : block.weights) ++uses.at(static_cast<size_t>(w));
    }
    placements_.reserve(specs.size());
    sinks_ = std::vector<GradientSink>(specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      placements_.emplace_back(specs[i]);
      weights_.push_back(initial(specs[i], generator).to(device));
      sinks_[i].prepare(&step_, uses[i], at::empty_like(weights_[i]), [] {});
    }
    ids_ = at::arange(kBatch * kSeqLen, at::kLong)
               .mul(2654435761)
               .bitwise_right_shift(7)
               .remainder(kVocabulary)
               .reshape({kBatch, kSeqLen});
    labels_ = ids_.roll(-1, 1).to(device);
    ids_ = ids_.to(device);
  }

  /// What block `name` gives; the head gives the loss sum.
  Tensor run(const std::string& until = "", const Tensor& ids = {}) {
    BlockInput input;
    input.x =
        at::empty({0}, at::TensorOptions(at::kFloat).device(ids_.device())).requires_grad_(true);
    input.ids = ids.defined() ? ids : ids_;
    input.labels = labels_;
    for (const BlockSpec& block : model_->blocks()) {
      std::vector<Weight> weights;
      for (const int w : block.weights) {
        const auto i = static_cast<size_t>(w);
        weights.push_back({&placements_[i], weights_[i], {}, &sinks_[i]});
      }
      input.x = model_->forward(block, input, weights, *ops_);
      if (block.name == until) break;
    }
    return input.x;
  }

  const Model& model() const { return *model_; }
  const std::vector<GradientSink>& sinks() const { return sinks_; }
  const Tensor& ids() const { return ids_; }

 private:
  std::unique_ptr<Model> model_;
  std::unique_ptr<Ops> ops_;
  StepState step_;
  std::vector<ParameterPlacement> placements_;
  std::vector<Tensor> weights_;
  std::vector<GradientSink> sinks_;
  Tensor ids_, labels_;
};

void declares_sound_parameters(const Subject& s) {
  const auto model = small_instance(s);
  std::set<std::string> names;
  for (const ParameterSpec& spec : model->parameters()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " is declared twice";
    EXPECT_EQ(spec.axes.size(), spec.shape.size()) << spec.name;
    for (size_t d = 0; d < spec.shape.size(); ++d) {
      EXPECT_GT(spec.shape[d], 0) << spec.name;
      EXPECT_EQ(spec.shape[d] % spec.axes[d].granule, 0) << spec.name;
    }
  }
}

void blocks_use_every_parameter(const Subject& s) {
  const auto model = small_instance(s);
  const auto blocks = model->blocks();
  ASSERT_GE(blocks.size(), 3u);
  EXPECT_EQ(blocks.front().kind, BlockSpec::Kind::embedding);
  EXPECT_EQ(blocks.back().kind, BlockSpec::Kind::head);
  std::set<int> used;
  int64_t layer = 0;
  for (const BlockSpec& block : blocks) {
    if (block.kind == BlockSpec::Kind::layer) {
      EXPECT_EQ(block.layer, layer++) << block.name;
    }
    used.insert(block.weights.begin(), block.weights.end());
  }
  ASSERT_FALSE(used.empty());
  EXPECT_EQ(used.size(), model->parameters().size());
  EXPECT_EQ(*used.rbegin(), static_cast<int>(model->parameters().size()) - 1);
}

void facts_follow_from_the_declaration(const Subject& s) {
  const auto model = small_instance(s);
  const auto facts = model->facts();
  int64_t layers = 0;
  for (const BlockSpec& block : model->blocks()) layers += block.kind == BlockSpec::Kind::layer;
  ASSERT_TRUE(facts.contains("layers"));
  EXPECT_EQ(facts.at("layers"), layers);
  for (const ParameterSpec& spec : model->parameters()) {
    if (spec.role != ParameterRole::embedding) continue;
    EXPECT_EQ(spec.shape, (Shape{model->vocabulary(), facts.at("hidden")}));
  }
}

/// Matrix weights that a token is multiplied with: of experts, those it goes to.
double active_weights(const Model& model) {
  const auto facts = model.facts();
  double weights = 0;
  for (const ParameterSpec& spec : model.parameters()) {
    if (spec.shape.size() < 2 || spec.role == ParameterRole::embedding) continue;
    const bool experts = spec.axes.at(0).axis == Axis::expert;
    const auto share = [&] {
      return static_cast<double>(facts.at("top_k")) / static_cast<double>(facts.at("experts"));
    };
    weights += static_cast<double>(numel(spec.shape)) * (experts ? share() : 1.0);
  }
  return weights;
}

/// "tt": six FLOPs per token and matrix weight that is multiplied, embedding left out.
void counts_its_flops(const Subject& s) {
  const auto model = small_instance(s);
  const double weights = active_weights(*model);
  const Flops flops = model->flops_per_token(kSeqLen);
  for (const char* formula : {"tt", "palm", "causal_half"}) {
    ASSERT_TRUE(flops.contains(formula)) << formula;
    EXPECT_GE(flops.at(formula), 6 * weights * 0.99) << formula << " is below the matrix products";
    EXPECT_LE(flops.at(formula), 6 * weights * 3) << formula;
  }
  EXPECT_LE(flops.at("causal_half"), flops.at("palm"));
}

void first_loss_is_the_predicted_one(const Subject& s) {
  ModelBench bench(s, at::kCPU);
  const double loss = bench.run().item<double>() / (kBatch * kSeqLen);
  // Logits of variance v cost ln V + v / 2; the initialisation aims at v = 1 or below.
  const double floor = std::log(static_cast<double>(bench.model().vocabulary()));
  EXPECT_GT(loss, floor - 0.15);
  EXPECT_LT(loss, floor + 0.5 + 0.25);
}

void every_parameter_gets_a_gradient(const Subject& s) {
  ModelBench bench(s, at::kCPU);
  bench.run().backward();
  const auto specs = bench.model().parameters();
  for (size_t i = 0; i < specs.size(); ++i) {
    ASSERT_TRUE(bench.sinks()[i].has_gradient()) << specs[i].name;
    EXPECT_GT(bench.sinks()[i].total().abs().sum().item<double>(), 0) << specs[i].name;
  }
}

void later_tokens_change_nothing_earlier(const Subject& s) {
  if (!s.provides("model.causal")) GTEST_SKIP() << "does not promise model.causal";
  ModelBench bench(s, at::kCPU);
  const auto blocks = bench.model().blocks();
  const std::string last_layer = blocks[blocks.size() - 2].name;
  const at::NoGradGuard no_grad;
  constexpr int64_t kCut = kSeqLen / 2;
  Tensor changed = bench.ids().clone();
  changed.narrow(1, kCut, 1).add_(1).remainder_(kVocabulary);
  const Tensor a = bench.run(last_layer), b = bench.run(last_layer, changed);
  EXPECT_TRUE(at::equal(a.narrow(1, 0, kCut), b.narrow(1, 0, kCut)));
  EXPECT_FALSE(at::equal(a.narrow(1, kCut, 1), b.narrow(1, kCut, 1)));
}

void shapes_hold_on_meta(const Subject& s) {
  if (!s.provides("meta.safe")) GTEST_SKIP() << "does not promise meta.safe";
  ModelBench bench(s, at::kMeta);
  const auto blocks = bench.model().blocks();
  const Tensor hidden = bench.run(blocks[blocks.size() - 2].name);
  EXPECT_EQ(hidden.sizes().vec(), (Shape{kBatch, kSeqLen, bench.model().facts().at("hidden")}));
  EXPECT_EQ(bench.run().dim(), 0) << "the head gives the loss sum";
}

}  // namespace

std::vector<Case> model_cases() {
  constexpr Kind k = Kind::model;
  return {{k, "DeclaresSoundParameters", declares_sound_parameters},
          {k, "BlocksUseEveryParameter", blocks_use_every_parameter},
          {k, "FactsFollowFromTheDeclaration", facts_follow_from_the_declaration},
          {k, "CountsItsFlops", counts_its_flops},
          {k, "FirstLossIsThePredictedOne", first_loss_is_the_predicted_one},
          {k, "EveryParameterGetsAGradient", every_parameter_gets_a_gradient},
          {k, "LaterTokensChangeNothingEarlier", later_tokens_change_nothing_earlier},
          {k, "ShapesHoldOnMeta", shapes_hold_on_meta}};
}

}  // namespace assay::conformance
