// Mixtures of experts give the numbers of one rank in every layout; the bits of forward do not
// depend on how many ranks share the experts.
#include <gtest/gtest.h>

#include "layouts.h"

namespace assay::parity::experts {
namespace {

using nlohmann::json;

constexpr int64_t kExperts = 8, kHidden = 32, kSequence = 16, kLayers = 4;

/// The small model of base_config() with a mixture in every layer and a shared expert.
json experts_config(json changes = json::object()) {
  json config = base_config();
  config["model"]["name"] = "moe";
  config["model"]["experts"] = kExperts;
  config["model"]["expert_ffn"] = 20;
  config["model"]["shared_experts"] = 1;
  config["model"]["bias_rate"] = 0.01;
  config.merge_patch(changes);
  return config;
}

struct Case {
  std::string name{}, mesh{};
  json components{};
  json changes = json::object();
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const json kEp = {{"name", "ep"}};
const json kFsdp = {{"name", "fsdp"}, {"unshard", "poison"}};
const json kZero1 = {{"name", "zero1"}, {"bucket_mb", 0.01}};
const json kTp = {{"name", "tp"}};
const json kCp = {{"name", "cp"}};
const json kPp = {{"name", "pp"}, {"schedule", "1f1b"}};
const json kZbv = {
    {"name", "pp"}, {"schedule", "zbv"}, {"first_less_layers", 0}, {"last_less_layers", 0}};
const json kDdp = {{"name", "ddp"}, {"bucket_mb", 0.01}};

std::vector<Case> cases() {
  const json full = {{"memory", {{"name", "full"}}}};
  const json selective = {{"memory", {{"name", "selective_op"}}}};
  const json grouped = {{"model",
                         {{"score", "sigmoid"},
                          {"groups", 4},
                          {"limited_groups", 2},
                          {"route_scale", 2.5},
                          {"moe_layers", "first_dense"}}}};
  return {
      {"ddp", "dp_replicate=2", {{"dp_replicate", kDdp}}},
      {"fsdp", "dp_shard=2", {{"dp_shard", kFsdp}}},
      {"fsdp_of_more_ranks_than_experts",
       "dp_shard=4",
       {{"dp_shard", kFsdp}},
       {{"model", {{"experts", 3}}}}},
      {"zero1", "dp_shard=2", {{"dp_shard", kZero1}}},
      {"tp", "tp=2", {{"tp", kTp}}},
      {"ddp_tp", "dp_replicate=2 tp=2", {{"dp_replicate", kDdp}, {"tp", kTp}}},
      {"fsdp_tp", "dp_shard=2 tp=2", {{"dp_shard", kFsdp}, {"tp", kTp}}},
      {"ep2_zero1", "dp_shard=2 ep=2", {{"dp_shard", kZero1}, {"ep", kEp}}},
      {"ep2_fsdp", "dp_shard=2 ep=2", {{"dp_shard", kFsdp}, {"ep", kEp}}},
      {"ep2_fsdp_of_4", "dp_shard=4 ep=2", {{"dp_shard", kFsdp}, {"ep", kEp}}},
      {"ep4_fsdp_of_4", "dp_shard=4 ep=4", {{"dp_shard", kFsdp}, {"ep", kEp}}},
      {"ep2_hsdp",
       "dp_replicate=2 dp_shard=2 ep=2",
       {{"dp_replicate", kDdp}, {"dp_shard", kFsdp}, {"ep", kEp}}},
      {"ep2_tp", "tp=2 ep=2", {{"tp", kTp}, {"ep", kEp}}},
      {"ep2_fsdp_tp", "dp_shard=2 tp=2 ep=2", {{"dp_shard", kFsdp}, {"tp", kTp}, {"ep", kEp}}},
      {"ep4_fsdp_tp", "dp_shard=2 tp=2 ep=4", {{"dp_shard", kFsdp}, {"tp", kTp}, {"ep", kEp}}},
      {"ep2_full", "dp_shard=2 ep=2", {{"dp_shard", kFsdp}, {"ep", kEp}}, full},
      {"ep2_selective", "dp_shard=2 ep=2", {{"dp_shard", kFsdp}, {"ep", kEp}}, selective},
      {"ep4_tp_selective",
       "dp_shard=2 tp=2 ep=4",
       {{"dp_shard", kFsdp}, {"tp", kTp}, {"ep", kEp}},
       selective},
      {"pp", "pp=2", {{"pp", kPp}}},
      {"pp_zero_bubble", "pp=2", {{"pp", kZbv}}},
      {"ep2_fsdp_pp", "pp=2 dp_shard=2 ep=2", {{"pp", kPp}, {"dp_shard", kFsdp}, {"ep", kEp}}},
      {"ep2_cp", "cp=2 ep=2", {{"cp", kCp}, {"dp_shard", kFsdp}, {"ep", kEp}}},
      {"ep2_groups", "dp_shard=2 ep=2", {{"dp_shard", kFsdp}, {"ep", kEp}}, grouped},
  };
}

class ExpertParity : public testing::TestWithParam<Case> {};

TEST_P(ExpertParity, GivesTheNumbersOfOneRank) {
  const Case& c = GetParam();
  const json config = experts_config(c.changes);
  const Distance d = distance(run(layout(c.mesh, c.components, config)), run(config).front());
  EXPECT_LE(d.loss, 1e-10);
  EXPECT_LE(d.norm, 1e-10);
  EXPECT_LE(d.eval, 1e-10);
  EXPECT_LE(d.weights, 1e-8);  // Adam divides by gradients that may be near zero
}

INSTANTIATE_TEST_SUITE_P(Table, ExpertParity, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

/// The loss of the first step and of the evaluation before any update.
TEST(Experts, ForwardHasTheSameBitsForEveryEp) {
  for (const char* precision : {"fp32", "bf16", "fp64"}) {
    const json config = experts_config({{"precision", {{"name", precision}}},
                                        {"optim", {{"lr", 0.0}}},
                                        {"model", {{"bias_rate", 0.0}}}});
    std::vector<RankOutcome> outcomes;
    for (const char* mesh : {"dp_shard=4", "dp_shard=4 ep=2", "dp_shard=4 ep=4"}) {
      outcomes.push_back(
          run(layout(mesh, {{"dp_shard", {{"name", "fsdp"}}}, {"ep", kEp}}, config), 1).front());
    }
    for (const RankOutcome& other : outcomes) {
      EXPECT_EQ(other.losses, outcomes[0].losses) << precision;
      EXPECT_EQ(other.eval_loss, outcomes[0].eval_loss) << precision;
    }
  }
}

/// Recompute keeps every bit, the bias that counts move included.
TEST(Experts, RecomputeChangesNoBit) {
  const auto outcome = [&](json memory) {
    const json components = {{"dp_shard", kFsdp}, {"ep", kEp}};
    return run(layout("dp_shard=2 ep=2", components, experts_config({{"memory", memory}})), 3);
  };
  const auto plain = outcome({{"name", "none"}});
  const json kept = {"linear", "attention", "all_to_all", "choose_experts", "dispatch", "combine"};
  for (const json& memory : {json{{"name", "full"}}, json{{"name", "selective_op"}},
                             json{{"name", "selective_op"}, {"save", kept}}}) {
    const auto other = outcome(memory);
    for (size_t rank = 0; rank < plain.size(); ++rank) {
      EXPECT_EQ(other[rank].losses, plain[rank].losses) << memory;
      EXPECT_EQ(other[rank].norms, plain[rank].norms) << memory;
      EXPECT_EQ(other[rank].eval_loss, plain[rank].eval_loss) << memory;
    }
  }
}

/// With round robin every expert gets the same: 2 k T d e w(ep) forward, the same backward, in two
/// messages each, and two more forward where a layer is computed again (recipes 2.11).
TEST(Experts, MessagesAndBytes) {
  constexpr int64_t kSteps = 2, kMicrobatches = 4, kTop = 2, kWidth = 8;
  for (const int64_t ep : {2, 4}) {
    for (const char* memory : {"none", "full", "selective_op"}) {
      SCOPED_TRACE(std::string(memory) + ", ep=" + std::to_string(ep));
      const json config = experts_config({{"memory", {{"name", memory}}},
                                          {"model", {{"force_balance", true}}},
                                          {"train", {{"global_batch", 4 * ep}}}});
      const std::string mesh = "dp_shard=" + std::to_string(ep) + " ep=" + std::to_string(ep);
      const json components = {{"dp_shard", {{"name", "fsdp"}}}, {"ep", kEp}};
      const int64_t again = memory == std::string("full") ? 1 : 0;
      const int64_t message = kTop * kSequence * kHidden * kWidth;
      for (const RankOutcome& rank : run(layout(mesh, components, config), kSteps)) {
        int64_t calls = 0, wire = 0, payload = 0;
        for (const Traffic& t : rank.traffic) {
          if (t.group != "ep") continue;
          EXPECT_EQ(t.op, "all_to_all");
          calls += t.count;
          wire += t.wire_bytes;
          payload += t.payload_bytes;
        }
        const int64_t expected = kSteps * kMicrobatches * kLayers * (4 + 2 * again);
        EXPECT_EQ(calls, expected);
        EXPECT_EQ(payload, expected * message);
        EXPECT_EQ(wire, expected * message * (ep - 1) / ep);
      }
    }
  }
}

TEST(Experts, ExpertWeightsAreCutByExpertThenSharded) {
  const json components = {{"dp_shard", {{"name", "fsdp"}}}, {"ep", kEp}};
  const auto ranks = run(layout("dp_shard=4 ep=2", components, experts_config()), 1);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const StoredPart& p : ranks[rank].parts) {
      if (p.name.find("experts.gate_proj") == std::string::npos) continue;
      if (p.name.find("shared") != std::string::npos) continue;
      // ep is the fastest of the four ranks, efsdp (2 ranks) the slower.
      const int64_t ep = static_cast<int64_t>(rank) % 2, shard = static_cast<int64_t>(rank) / 2;
      EXPECT_EQ(p.box.begin[0], ep * 4 + shard * 2) << p.name << " rank " << rank;
      EXPECT_EQ(p.box.size, (Shape{2, 20, kHidden}));
    }
  }
}

}  // namespace
}  // namespace assay::parity::experts
