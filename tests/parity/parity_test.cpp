// Every strategy and every composition gives the numbers of one rank: fp64, 5 steps, 1e-10.
#include <gtest/gtest.h>

#include "layouts.h"

namespace assay::parity {
namespace {

using nlohmann::json;

struct Case {
  std::string name{}, mesh{};
  json components{};
  json changes = json::object();  ///< merged into the configuration
  double bound = 1e-10;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

json config_of(const Case& c) {
  json config = layout(c.mesh, c.components);
  config.merge_patch(c.changes);
  return config;
}

const json kDdp = {{"name", "ddp"}, {"bucket_mb", 0.01}};
const json kZero1 = {{"name", "zero1"}, {"bucket_mb", 0.01}};
const json kZero2 = {{"name", "zero2"}, {"bucket_mb", 0.01}};
const json kFsdp = {{"name", "fsdp"}};
const json kPoison = {{"name", "fsdp"}, {"unshard", "poison"}};
const json kTp = {{"name", "tp"}};
const json kTpPlain = {{"name", "tp"}, {"sp", false}};

std::vector<Case> cases() {
  const json full = {{"memory", {{"name", "full"}}}};
  const json selective = {{"memory", {{"name", "selective_op"}}}};
  return {
      {"ddp2", "dp_replicate=2", {{"dp_replicate", kDdp}}},
      {"zero1", "dp_shard=2", {{"dp_shard", kZero1}}},
      {"zero2", "dp_shard=2", {{"dp_shard", kZero2}}},
      {"zero1_of_4", "dp_shard=4", {{"dp_shard", kZero1}}},
      {"fsdp", "dp_shard=2", {{"dp_shard", kFsdp}}},
      {"fsdp_of_4", "dp_shard=4", {{"dp_shard", kFsdp}}},
      {"fsdp_poison", "dp_shard=2", {{"dp_shard", kPoison}}},
      {"fsdp_always", "dp_shard=2", {{"dp_shard", {{"name", "fsdp"}, {"reshard", "always"}}}}},
      {"fsdp_never", "dp_shard=2", {{"dp_shard", {{"name", "fsdp"}, {"reshard", "never"}}}}},
      {"fsdp_last", "dp_shard=2", {{"dp_shard", {{"name", "fsdp"}, {"sync", "last"}}}}},
      {"fsdp_full", "dp_shard=2", {{"dp_shard", kPoison}}, full},
      {"fsdp_selective", "dp_shard=2", {{"dp_shard", kPoison}}, selective},
      {"hsdp", "dp_replicate=2 dp_shard=2", {{"dp_replicate", kDdp}, {"dp_shard", kFsdp}}},
      {"ddp_zero1", "dp_replicate=2 dp_shard=2", {{"dp_replicate", kDdp}, {"dp_shard", kZero1}}},
      {"tp", "tp=2", {{"tp", kTp}}},
      {"tp_without_sp", "tp=2", {{"tp", kTpPlain}}},
      {"tp_keeps_gathered", "tp=2", {{"tp", {{"name", "tp"}, {"regather", false}}}}},
      {"tp_full", "tp=2", {{"tp", kTp}}, full},
      {"tp_selective", "tp=2", {{"tp", kTp}}, selective},
      {"ddp_tp", "dp_replicate=2 tp=2", {{"dp_replicate", kDdp}, {"tp", kTp}}},
      {"fsdp_tp", "dp_shard=2 tp=2", {{"dp_shard", kPoison}, {"tp", kTp}}},
      {"fsdp_tp_selective", "dp_shard=2 tp=2", {{"dp_shard", kPoison}, {"tp", kTp}}, selective},
      {"hsdp_tp",
       "dp_replicate=2 dp_shard=2 tp=2",
       {{"dp_replicate", kDdp}, {"dp_shard", kFsdp}, {"tp", kTp}}},
  };
}

class Parity : public testing::TestWithParam<Case> {};

TEST_P(Parity, GivesTheNumbersOfOneRank) {
  static const RankOutcome one = run(base_config()).front();
  const Case& c = GetParam();
  const Distance d = distance(run(config_of(c)), one);
  EXPECT_LE(d.loss, c.bound);
  EXPECT_LE(d.norm, c.bound);
  EXPECT_LE(d.eval, c.bound);
  EXPECT_LE(d.weights, 100 * c.bound);  // Adam divides by gradients that may be near zero
}

INSTANTIATE_TEST_SUITE_P(Table, Parity, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace assay::parity
