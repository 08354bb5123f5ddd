// Every strategy and every composition gives the numbers of one rank: fp64, 5 steps, 1e-10.
#include <gtest/gtest.h>

#include <map>

#include "layouts.h"

namespace assay::parity::table {
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
const json kAsyncTp = {{"name", "async_tp"}};
const json kTpPlain = {{"name", "tp"}, {"sp", false}};

std::vector<Case> cases() {
  const json full = {{"memory", {{"name", "full"}}}};
  const json selective = {{"memory", {{"name", "selective_op"}}}};
  const json tied = {{"model", {{"tied", "true"}}}};
  const json always = {{"name", "fsdp"}, {"reshard", "always"}};
  return {
      {"ddp2", "dp_replicate=2", {{"dp_replicate", kDdp}}},
      {"zero1", "dp_shard=2", {{"dp_shard", kZero1}}},
      {"zero2", "dp_shard=2", {{"dp_shard", kZero2}}},
      {"zero1_of_4", "dp_shard=4", {{"dp_shard", kZero1}}},
      {"fsdp", "dp_shard=2", {{"dp_shard", kFsdp}}},
      {"fsdp_of_4", "dp_shard=4", {{"dp_shard", kFsdp}}},
      {"fsdp_poison", "dp_shard=2", {{"dp_shard", kPoison}}},
      {"fsdp_always", "dp_shard=2", {{"dp_shard", always}}},
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
      {"async_tp", "tp=2", {{"tp", kAsyncTp}}},
      {"async_tp_pieces", "tp=2", {{"tp", {{"name", "async_tp"}, {"pieces", 2}}}}},
      {"async_tp_full", "tp=2", {{"tp", kAsyncTp}}, full},
      {"fsdp_async_tp", "dp_shard=2 tp=2", {{"dp_shard", kPoison}, {"tp", kAsyncTp}}},
      {"ddp_tp", "dp_replicate=2 tp=2", {{"dp_replicate", kDdp}, {"tp", kTp}}},
      {"fsdp_tp", "dp_shard=2 tp=2", {{"dp_shard", kPoison}, {"tp", kTp}}},
      {"fsdp_tp_selective", "dp_shard=2 tp=2", {{"dp_shard", kPoison}, {"tp", kTp}}, selective},
      {"tied_zero1", "dp_shard=2", {{"dp_shard", kZero1}}, tied},
      {"tied_fsdp", "dp_shard=2", {{"dp_shard", kPoison}}, tied},
      {"tied_fsdp_always", "dp_shard=2", {{"dp_shard", always}}, tied},
      {"tied_fsdp_tp", "dp_shard=2 tp=2", {{"dp_shard", kFsdp}, {"tp", kTp}}, tied},
      {"tied_zbv",
       "pp=2",
       {{"pp",
         {{"name", "pp"}, {"schedule", "zbv"}, {"first_less_layers", 0}, {"last_less_layers", 0}}}},
       tied},
      {"hsdp_tp",
       "dp_replicate=2 dp_shard=2 tp=2",
       {{"dp_replicate", kDdp}, {"dp_shard", kFsdp}, {"tp", kTp}}},
  };
}

class Parity : public testing::TestWithParam<Case> {};

/// One rank with the same model, data and precision; runs once for all cases that share them.
const RankOutcome& baseline(const Case& c) {
  static std::map<std::string, RankOutcome> known;
  json config = base_config();
  config.merge_patch(c.changes);
  config["memory"] = {{"name", "none"}};
  const std::string key = config.dump();
  if (!known.contains(key)) known.emplace(key, run(config).front());
  return known.at(key);
}

TEST_P(Parity, GivesTheNumbersOfOneRank) {
  const Case& c = GetParam();
  const Distance d = distance(run(config_of(c)), baseline(c));
  EXPECT_LE(d.loss, c.bound);
  EXPECT_LE(d.norm, c.bound);
  EXPECT_LE(d.eval, c.bound);
  EXPECT_LE(d.weights, 100 * c.bound);  // Adam divides by gradients that may be near zero
}

INSTANTIATE_TEST_SUITE_P(Table, Parity, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace assay::parity::table
