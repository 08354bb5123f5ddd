// Mistakes in training end in a failed tier within 20 steps, as `assay compare` judges two curves;
// honest reorderings of sums end in none.
#include <ATen/ops/empty.h>
#include <ATen/ops/roll.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <boost/random/mersenne_twister.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <limits>
#include <numeric>

#include "assay/primitive.h"
#include "core/evidence/bits.h"
#include "core/evidence/tier.h"
#include "core/train/counter_random.h"
#include "faults.h"
#include "layouts.h"

namespace assay::parity::tier {
namespace {

using evidence::BitSeries;
using evidence::Call;
using evidence::kEnvelopeRuns;
using evidence::kEnvelopeSteps;
using evidence::Tier;
using evidence::Verdict;
using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;

/// One training run: a configuration and what is planted in it.
struct Arm {
  json config{};
  Tamper tamper{};
  Plant plant{};
};

/// One layer of the parity table's model, all of whose weights float8 converts.
json small(const std::string& precision = "fp32") {
  json config = base_config();
  config["model"].update({{"layers", 1}, {"ffn", 48}});
  config["precision"] = {{"name", precision}};
  config["train"]["steps"] = kEnvelopeSteps;
  return config;
}

json with_micro_batch(json config, int64_t rows) {
  config["train"]["micro_batch"] = rows;
  return config;
}

/// Steps and what they left, numbered as the database does.
BitSeries series(const Arm& arm) {
  const RankOutcome rank = run(arm.config, kEnvelopeSteps, arm.tamper, arm.plant).front();
  BitSeries s;
  for (size_t i = 0; i < rank.losses.size(); ++i) {
    s.steps.push_back({.step = static_cast<int64_t>(i) + 1,
                       .loss = rank.losses[i],
                       .grad_norm = rank.norms[i],
                       .loss_bits = std::bit_cast<int64_t>(rank.losses[i]),
                       .grad_norm_bits = std::bit_cast<int64_t>(rank.norms[i])});
  }
  return s;
}

/// One rank takes the microbatches of a step in another order, so gradients add up in it.
Tamper in_order(std::vector<int64_t> order) {
  return [order = std::move(order)](train::Assembly& a) {
    for (Action& action : a.pipeline.actions.front()) {
      if (action.kind == ActionKind::reduce_gradients) continue;
      action.microbatch = order.at(static_cast<size_t>(action.microbatch));
    }
  };
}

std::vector<int64_t> shuffled(int64_t microbatches, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(microbatches));
  std::iota(order.begin(), order.end(), int64_t{0});
  boost::random::mt19937_64 random(seed);
  for (size_t i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[boost::random::uniform_int_distribution<size_t>(0, i)(random)]);
  }
  return order;
}

Arm reordered(const json& config, uint64_t seed) {
  const int64_t rows = config["train"]["micro_batch"], all = config["train"]["global_batch"];
  return {config, in_order(shuffled(all / rows, seed))};
}

/// The runs of purpose `envelope`: microbatches split and reordered.
std::vector<BitSeries> perturbed(const json& config, bool split) {
  std::vector<BitSeries> runs;
  if (split) {
    for (const int64_t rows : {2, 4, 8}) runs.push_back(series({with_micro_batch(config, rows)}));
  }
  for (uint64_t seed = 1; std::ssize(runs) < kEnvelopeRuns; ++seed) {
    runs.push_back(series(reordered(config, seed)));
  }
  return runs;
}

/// memory/none and memory/full promise the same bits; the rest is not asked about.
evidence::Trait promise(const std::string& position, const std::string&, const std::string&) {
  return {.known = true, .bitwise_identical = position == "memory"};
}

/// A baseline with the envelope of its honest perturbations.
class Baseline {
 public:
  explicit Baseline(Arm arm, bool split = true)
      : arm_(std::move(arm)), series_(series(arm_)), perturbed_(perturbed(arm_.config, split)) {}

  Verdict envelope(const Arm& candidate) const {
    return evidence::judge_envelope(series_, perturbed_, series(candidate),
                                    std::numeric_limits<float>::epsilon());
  }
  bool same_bits(const Arm& candidate) const {
    return evidence::judge_bits(series_, series(candidate)).call == Call::parity;
  }

 private:
  const Arm arm_;
  const BitSeries series_;
  const std::vector<BitSeries> perturbed_;
};

const Baseline& fp32() {
  static const Baseline baseline({small()});
  return baseline;
}

Tier owed(const json& base, const json& candidate) {
  return evidence::choose_tier(base, candidate, promise).tier;
}

/// A layout that owes the baseline T1, with a mistake in it.
void expect_failed(const json& candidate, const Tamper& tamper, const Plant& plant = {}) {
  ASSERT_EQ(owed(small(), candidate), Tier::t1);
  EXPECT_EQ(fp32().envelope({candidate}).call, Call::parity) << "without the fault";
  const Verdict v = fp32().envelope({candidate, tamper, plant});
  EXPECT_EQ(v.call, Call::no_parity);
  EXPECT_THAT(v.reason, AnyOf(HasSubstr("loss of step "), HasSubstr("gradient norm of step ")));
  testing::Test::RecordProperty("found", v.reason);
}

/// Puts a layer where precision has its own.
template <class Layer>
Plant over_precision() {
  class Planted final : public Precision {
   public:
    explicit Planted(std::unique_ptr<Precision> inner) : inner_(std::move(inner)) {}
    Dtypes dtypes() const override { return inner_->dtypes(); }
    std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& c) override {
      return std::make_unique<Layer>(inner_->wrap_ops(std::move(next), c), c);
    }

   private:
    std::unique_ptr<Precision> inner_;
  };
  return [](train::Recipe& r) { r.precision = std::make_unique<Planted>(std::move(r.precision)); };
}

class HotSoftmax final : public OpsLayer {
 public:
  HotSoftmax(std::unique_ptr<Ops> next, const RankContext&) : OpsLayer(std::move(next)) {}
  AttentionPart attention_part(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttentionSpec& spec) override {
    AttentionSpec hot = spec;
    hot.scale *= 1.01;
    return next().attention_part(q, k, v, hot);
  }
};

TEST(TierFaults, ASoftmaxScaleOffByOnePercent) {
  expect_failed(with_micro_batch(small(), 2), {}, over_precision<HotSoftmax>());
}

TEST(TierFaults, ADroppedGradientBucket) {
  json config = layout("dp_replicate=2", {{"dp_replicate", {{"name", "ddp"}}}}, small());
  config["parallel"]["dp_replicate"]["overlap"] = false;  // the sum starts in wait() only
  expect_failed(config, [](train::Assembly& a) {
    a.syncs.front() =
        std::make_unique<fault::Dropping>(std::move(a.syncs.front()), a.parameters[3]);
  });
}

TEST(TierFaults, AShiftedLabel) {
  const json config = layout("tp=2", {{"tp", {{"name", "tp"}}}}, small());
  expect_failed(config, [](train::Assembly& a) {
    a.runner = std::make_unique<fault::Runner>(std::move(a.runner),
                                               [](const BlockSpec&, BlockInput& input) {
                                                 input.labels = at::roll(input.labels, {1}, {1});
                                               });
  });
}

/// Quantises the input of a linear layer with the scale of that layer's first call, in e4m3; what
/// float8 makes of it keeps the range, and the grid where values have grown.
class StaleScale final : public OpsLayer {
 public:
  StaleScale(std::unique_ptr<Ops> next, const RankContext&) : OpsLayer(std::move(next)) {}
  Tensors linear(const Tensor& x, std::span<const Weight> weights) override {
    const auto first = amax_.try_emplace(weights.front().spec().name, x.abs().max().item<double>());
    const double scale = kMax / first.first->second;
    const Tensor stale = primitive(
        {x},
        [scale](const Tensors& in, Tensors&) {
          const Tensor codes = in[0].mul(scale).clamp_(-kMax, kMax).to(at::kFloat8_e4m3fn);
          return Tensors{codes.to(in[0].scalar_type()).div_(scale)};
        },
        [](const Tensors&, const Tensors& dy) { return dy; })[0];
    return next().linear(stale, weights);
  }

 private:
  static constexpr double kMax = 448;
  std::map<std::string, double> amax_;
};

TEST(TierFaults, AStaleFloat8Scale) {
  json config = small("float8");
  config["train"]["global_batch"] = 4;
  config["precision"].update({{"base", "fp32"}, {"recipe", "tensorwise"}});
  const Baseline baseline({config}, /*split=*/false);  // a split has other tensors, other scales
  EXPECT_EQ(baseline.envelope(reordered(config, 100)).call, Call::parity) << "without the fault";
  const Verdict v = baseline.envelope({config, {}, over_precision<StaleScale>()});
  EXPECT_EQ(v.call, Call::no_parity) << v.reason;
  testing::Test::RecordProperty("found", v.reason);
}

/// Dropout of a tenth of what is added to the residual. The numbers of a microbatch are those of
/// its place in a stream; a replay of a block draws from `restored` places, or goes on in the
/// stream.
template <bool restored>
class Dropout final : public OpsLayer {
 public:
  Dropout(std::unique_ptr<Ops> next, const RankContext& c)
      : OpsLayer(std::move(next)), step_(c.step) {}
  Tensor pointwise(Pointwise kind, std::span<const Tensor> inputs) override {
    if (kind != Pointwise::residual) return next().pointwise(kind, inputs);
    const Tensor parts[] = {inputs[0], inputs[1].mul(mask(inputs[1]))};
    return next().pointwise(kind, parts);
  }

 private:
  static constexpr int64_t kPerBlock = 2;

  Tensor mask(const Tensor& like) {
    if (step_.microbatch != microbatch_) drawn_ = 0;
    microbatch_ = step_.microbatch;
    const int64_t place = restored ? drawn_ % kPerBlock : drawn_;
    ++drawn_;
    const uint64_t key = train::stream_key(static_cast<uint64_t>(place), "dropout");
    Tensor keep = at::empty(like.sizes(), like.options().requires_grad(false));
    auto* values = keep.mutable_data_ptr<float>();
    for (int64_t i = 0; i < keep.numel(); ++i) {
      values[i] = train::uniform_at(key, static_cast<uint64_t>(i)) < 0.1 ? 0.0F : 1 / 0.9F;
    }
    return keep;
  }

  const StepState& step_;
  int64_t microbatch_ = -1, drawn_ = 0;
};

template <bool restored>
Verdict plain_against_recomputed() {
  json recomputed = small();
  recomputed["memory"] = {{"name", "full"}};
  EXPECT_EQ(owed(small(), recomputed), Tier::t0);
  const Plant dropout = over_precision<Dropout<restored>>();
  return evidence::judge_bits(series({small(), {}, dropout}), series({recomputed, {}, dropout}));
}

TEST(TierFaults, AGeneratorThatRecomputeDoesNotRestore) {
  EXPECT_EQ(plain_against_recomputed<true>().call, Call::parity) << "without the fault";
  const Verdict v = plain_against_recomputed<false>();
  EXPECT_EQ(v.call, Call::no_parity);
  EXPECT_THAT(v.reason, HasSubstr("gradient norm differs at step 1")) << "no loss differs there";
}

/// Layouts and bucket sizes, each in `microbatches` parts of the rank's rows.
std::vector<json> other_layouts(int64_t microbatches) {
  std::vector<json> configs;
  const auto add = [&](const std::string& mesh, const json& components, int64_t dp = 1) {
    configs.push_back(layout(mesh, components, with_micro_batch(small(), 8 / dp / microbatches)));
  };
  for (const double mb : {0.001, 0.01, 25.0}) {
    const auto bucketed = [&](const char* name) { return json{{"name", name}, {"bucket_mb", mb}}; };
    add("dp_replicate=2", {{"dp_replicate", bucketed("ddp")}}, 2);
    add("dp_replicate=4", {{"dp_replicate", bucketed("ddp")}}, 4);
    for (const char* name : {"zero1", "zero2"})
      add("dp_shard=2", {{"dp_shard", bucketed(name)}}, 2);
  }
  if (microbatches > 1) return configs;  // the others wait for each other in every microbatch
  const json tp = {{"name", "tp"}};
  for (const char* sync : {"every", "last"}) {
    const json fsdp = {{"name", "fsdp"}, {"sync", sync}};
    add("dp_shard=2", {{"dp_shard", fsdp}}, 2);
    add("dp_shard=4", {{"dp_shard", fsdp}}, 4);
    add("dp_replicate=2 dp_shard=2", {{"dp_replicate", {{"name", "ddp"}}}, {"dp_shard", fsdp}}, 4);
    add("tp=2 dp_shard=2", {{"tp", tp}, {"dp_shard", fsdp}}, 2);
    add("cp=2", {{"cp", {{"name", "cp"}}}, {"dp_shard", fsdp}});
  }
  add("tp=2", {{"tp", tp}});
  add("tp=2", {{"tp", {{"name", "tp"}, {"sp", false}}}});
  add("tp=2", {{"tp", {{"name", "async_tp"}}}});
  add("pp=2", {{"pp", {{"name", "pp"}, {"schedule", "gpipe"}}}});
  return configs;
}

/// The same mathematics in other orders: those layouts, and microbatches shuffled.
std::vector<Arm> honest() {
  std::vector<Arm> arms;
  for (const int64_t microbatches : {1, 2}) {
    for (const json& config : other_layouts(microbatches)) arms.push_back({config});
  }
  for (uint64_t seed = 100; arms.size() < 100; ++seed) {
    arms.push_back(reordered(with_micro_batch(small(), seed % 3 == 0 ? 2 : 1), seed));
  }
  return arms;
}

TEST(TierFaults, AHundredHonestReorderingsRaiseNoAlarm) {
  int alarms = 0, other_bits = 0;
  const std::vector<Arm> arms = honest();
  ASSERT_EQ(arms.size(), 100);
  for (const Arm& arm : arms) {
    const Verdict v = fp32().envelope(arm);
    alarms += v.call != Call::parity;
    if (v.call != Call::parity) {
      ADD_FAILURE() << arm.config["mesh"].dump() << arm.config["parallel"].dump() << v.reason;
    }
  }
  for (size_t i = 0; i < arms.size(); i += 10) other_bits += !fp32().same_bits(arms[i]);
  EXPECT_EQ(alarms, 0);
  EXPECT_GE(other_bits, 8) << "of 10: the order of sums hardly differs";
}

}  // namespace
}  // namespace assay::parity::tier
