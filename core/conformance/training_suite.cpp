// Memory policies, precisions, compile backends and parallel strategies: judged by what a short
// training run reports with them and without them.
#include <cmath>
#include <limits>

#include "assay/compile.h"
#include "assay/memory.h"
#include "assay/parallel.h"
#include "assay/precision.h"
#include "core/conformance/training.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

#define SKIP_WITHOUT(config)                                                                 \
  if (!load_companions(config)) {                                                            \
    GTEST_SKIP() << "needs assay's own plugins in lib/assay/plugins beside its executables"; \
  }

void expect_equal_bits(const RankRun& got, const RankRun& want) {
  EXPECT_EQ(got.integers("loss_bits"), want.integers("loss_bits")) << "losses differ";
  EXPECT_EQ(got.integers("grad_norm_bits"), want.integers("grad_norm_bits")) << "gradients differ";
  EXPECT_EQ(got.facts().at("parameter_checksum"), want.facts().at("parameter_checksum"));
}

/// Relative gap of losses and gradient norms, step by step.
void expect_close(const RankRun& got, const RankRun& want, double loss_bound, double norm_bound) {
  const auto losses = got.reals("loss"), wanted = want.reals("loss");
  const auto norms = got.reals("grad_norm"), wanted_norms = want.reals("grad_norm");
  ASSERT_EQ(losses.size(), wanted.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_LE(std::fabs(losses[i] - wanted[i]) / wanted[i], loss_bound) << "loss of step " << i;
    EXPECT_LE(std::fabs(norms[i] - wanted_norms[i]) / wanted_norms[i], norm_bound)
        << "gradient norm of step " << i;
  }
}

void two_runs_agree(const Subject& s) {
  SKIP_WITHOUT(plain_config());
  const json config = with_subject(s);
  expect_equal_bits(train(config).front(), train(config).front());
}

void loss_falls(const Subject& s) {
  SKIP_WITHOUT(plain_config());
  json config = with_subject(s);
  config["train"]["steps"] = 30;
  const auto losses = train(config).front().reals("loss");
  EXPECT_LT(losses.back(), losses.front() - 0.05) << "30 steps on learnable rows taught nothing";
}

// --- memory

std::vector<BlockSpec> four_layers() {
  std::vector<BlockSpec> blocks{{.kind = BlockSpec::Kind::embedding, .name = "embedding"}};
  for (int64_t i = 0; i < 4; ++i) {
    blocks.push_back({.name = "layers." + std::to_string(i), .layer = i});
  }
  blocks.push_back({.kind = BlockSpec::Kind::head, .name = "head"});
  return blocks;
}

void decisions_never_change(const Subject& s) {
  const auto first = s.create<MemoryPolicy>(), second = s.create<MemoryPolicy>();
  for (int round = 0; round < 2; ++round) {
    for (const BlockSpec& block : four_layers()) {
      EXPECT_EQ(first->block(block, 4), second->block(block, 4)) << block.name;
    }
    for (int64_t linear = 0; linear < 7; ++linear) {
      const OpUse use{"assay::linear", linear, "model.layers.0.mlp.up_proj.weight"};
      EXPECT_EQ(first->op(use), second->op(use)) << "linear " << linear;
    }
    EXPECT_EQ(first->op({"assay::attention", -1, ""}), second->op({"assay::attention", -1, ""}));
  }
}

void same_bits_as_none(const Subject& s) {
  SKIP_WITHOUT(plain_config());
  expect_equal_bits(train(with_subject(s)).front(), train(plain_config()).front());
}

void saves_no_more_than_none(const Subject& s) {
  SKIP_WITHOUT(plain_config());
  const double own = train(with_subject(s)).front().metric("saved_activation_bytes");
  const double none = train(plain_config()).front().metric("saved_activation_bytes");
  ASSERT_GT(none, 0);
  EXPECT_LE(own, none);
}

// --- precision

double epsilon(at::ScalarType dtype) {
  if (dtype == at::kDouble) return std::numeric_limits<float>::epsilon();  // the reference is fp32
  if (dtype == at::kFloat) return std::numeric_limits<float>::epsilon();
  return dtype == at::kHalf ? std::ldexp(1.0, -10) : std::ldexp(1.0, -7);  // fp16, bf16
}

void masters_are_wide(const Subject& s) {
  const Dtypes dtypes = s.create<Precision>()->dtypes();
  EXPECT_TRUE(dtypes.master == at::kFloat || dtypes.master == at::kDouble) << "master weights";
  EXPECT_TRUE(at::isFloatingType(dtypes.compute));
}

void stays_within_its_rounding(const Subject& s) {
  SKIP_WITHOUT(plain_config());
  const RankRun own = train(with_subject(s)).front(), fp32 = train(plain_config()).front();
  for (const double loss : own.reals("loss")) ASSERT_TRUE(std::isfinite(loss));
  // A loss near ln V is a mean over tokens of sums over a few hundred roundings: 16 of them.
  const double bound = 16 * epsilon(s.create<Precision>()->dtypes().compute);
  expect_close(own, fp32, bound, 8 * bound);
}

// --- compile

void matches_eager(const Subject& s) {
  SKIP_WITHOUT(plain_config());
  // Other orders of sums in fp32: a few roundings per sum, grown over four steps.
  constexpr double kBound = 1e-5;
  expect_close(train(with_subject(s)).front(), train(plain_config()).front(), kBound, 20 * kBound);
}

// --- parallel

bool serves_experts(const Subject& s) { return s.entry->manifest.dims.front() == "ep"; }

/// One rank without the subject. ep needs a model with experts.
json reference_config(const Subject& s) {
  json config = plain_config();
  if (serves_experts(s)) config["model"]["name"] = "moe";
  return config;
}

/// ep is cut out of other dimensions: fsdp's ranks share the experts.
json parallel_config(const Subject& s, int64_t degree) {
  json config = with_subject(s, reference_config(s));
  config["mesh"][s.entry->manifest.dims.front()] = degree;
  if (!serves_experts(s)) return config;
  config["mesh"]["dp_shard"] = degree;
  config["parallel"]["dp_shard"] = {{"name", "fsdp"}};
  return config;
}

/// The tiny model has 2 kv heads.
std::vector<int64_t> degrees(const Subject& s) {
  return s.entry->manifest.dims.front() == "tp" ? std::vector<int64_t>{2}
                                                : std::vector<int64_t>{2, 4};
}

void ranks_equal_one_rank(const Subject& s) {
  SKIP_WITHOUT(parallel_config(s, 2));
  const RankRun one = train(reference_config(s)).front();
  for (const int64_t degree : degrees(s)) {
    const auto runs = train(parallel_config(s, degree), static_cast<int>(degree));
    constexpr double kBound = 1e-5;  // T1: the sums of a step in another order
    expect_close(runs.front(), one, kBound, 20 * kBound);
    for (const RankRun& run : runs) {
      EXPECT_EQ(run.integers("loss_bits"), runs.front().integers("loss_bits"))
          << "every rank reports the global loss";
    }
  }
}

void replicas_hold_equal_weights(const Subject& s) {
  SKIP_WITHOUT(parallel_config(s, 2));
  if (s.entry->manifest.dims.front() != "dp_replicate") {
    GTEST_SKIP() << "only replicas hold equal weights";
  }
  const auto runs = train(parallel_config(s, 2), 2);
  EXPECT_EQ(runs[0].facts().at("parameter_checksum"), runs[1].facts().at("parameter_checksum"));
}

/// (group, operation, dtype, phase) -> calls and bytes, without the control traffic.
json traffic_of(const RankRun& run) {
  json calls = json::object();
  for (const json& row : run.rows) {
    if (row.at("t") != "collectives" || row.at("phase") == "control") continue;
    const std::string key = row.at("grp").get<std::string>() + " " +
                            row.at("op").get<std::string>() + " " +
                            row.at("dtype").get<std::string>();
    calls[key] = {{"count", row.at("count")}, {"payload", row.at("payload_bytes")}};
  }
  return calls;
}

void all_ranks_make_the_same_calls(const Subject& s) {
  SKIP_WITHOUT(parallel_config(s, 2));
  if (s.entry->manifest.dims.front() == "pp") GTEST_SKIP() << "the ends of a pipeline differ";
  json config = parallel_config(s, 2);
  if (serves_experts(s)) config["model"]["force_balance"] = true;  // routers choose unevenly
  const auto runs = train(config, 2);
  EXPECT_FALSE(traffic_of(runs[0]).empty()) << "two ranks exchanged nothing";
  EXPECT_EQ(traffic_of(runs[0]), traffic_of(runs[1]));
}

void one_rank_is_a_no_op(const Subject& s) {
  SKIP_WITHOUT(parallel_config(s, 2));
  expect_equal_bits(train(parallel_config(s, 1)).front(), train(reference_config(s)).front());
}

}  // namespace

std::vector<Case> training_cases() {
  std::vector<Case> cases{
      {Kind::memory, "DecisionsNeverChange", decisions_never_change},
      {Kind::memory, "SameBitsAsNone", same_bits_as_none},
      {Kind::memory, "SavesNoMoreThanNone", saves_no_more_than_none},
      {Kind::precision, "MastersAreWide", masters_are_wide},
      {Kind::precision, "StaysWithinItsRounding", stays_within_its_rounding},
      {Kind::compile, "MatchesEager", matches_eager},
      {Kind::parallel, "RanksEqualOneRank", ranks_equal_one_rank},
      {Kind::parallel, "ReplicasHoldEqualWeights", replicas_hold_equal_weights},
      {Kind::parallel, "AllRanksMakeTheSameCalls", all_ranks_make_the_same_calls},
      {Kind::parallel, "OneRankIsANoOp", one_rank_is_a_no_op}};
  for (const Kind kind : {Kind::precision, Kind::compile, Kind::model, Kind::optim}) {
    cases.push_back({kind, "TwoRunsAgree", two_runs_agree});
    cases.push_back({kind, "LossFalls", loss_falls});
  }
  return cases;
}

}  // namespace assay::conformance
