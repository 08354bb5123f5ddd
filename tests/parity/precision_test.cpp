// In fp32 and bf16 a layout may be as far from the fp64 run as twice what the precision itself
// costs on one rank (tier T1: the same mathematics, other order of sums).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "layouts.h"

namespace assay::parity::precision {
namespace {

using nlohmann::json;

constexpr int64_t kSteps = 3;

json in_precision(json config, const std::string& name) {
  config["precision"] = {{"name", name}};
  return config;
}

const RankOutcome& in_fp64() {
  static const RankOutcome one = run(base_config(), kSteps).front();
  return one;
}

/// Largest relative distance of losses and of gradient norms to the fp64 run on one rank.
std::pair<double, double> errors(const RankOutcome& rank) {
  double loss = 0, norm = 0;
  for (size_t i = 0; i < rank.losses.size(); ++i) {
    loss = std::max(loss, std::abs(rank.losses[i] / in_fp64().losses[i] - 1));
    norm = std::max(norm, std::abs(rank.norms[i] / in_fp64().norms[i] - 1));
  }
  return {loss, norm};
}

struct Layout {
  const char* mesh;
  json components;
};

std::vector<Layout> layouts() {
  const json ddp = {{"name", "ddp"}}, fsdp = {{"name", "fsdp"}}, tp = {{"name", "tp"}},
             zero1 = {{"name", "zero1"}}, zero2 = {{"name", "zero2"}},
             pp = {{"name", "pp"}, {"schedule", "interleaved_zb"}};
  return {{"dp_replicate=2", {{"dp_replicate", ddp}}},
          {"dp_shard=2", {{"dp_shard", zero1}}},
          {"dp_shard=2", {{"dp_shard", zero2}}},
          {"dp_shard=2", {{"dp_shard", fsdp}}},
          {"dp_replicate=2 dp_shard=2", {{"dp_replicate", ddp}, {"dp_shard", fsdp}}},
          {"tp=2", {{"tp", tp}}},
          {"tp=2", {{"tp", {{"name", "tp"}, {"sp", false}}}}},
          {"tp=2", {{"tp", {{"name", "async_tp"}}}}},
          {"dp_shard=2 tp=2", {{"dp_shard", fsdp}, {"tp", tp}}},
          {"pp=2", {{"pp", pp}}},
          {"pp=2 dp_shard=2", {{"pp", pp}, {"dp_shard", fsdp}}}};
}

void stays_within_its_rounding(const std::string& precision, double floor) {
  const auto [plain_loss, plain_norm] =
      errors(run(in_precision(base_config(), precision), kSteps).front());
  for (const Layout& l : layouts()) {
    SCOPED_TRACE(l.mesh + l.components.dump());
    const auto ranks = run(in_precision(layout(l.mesh, l.components), precision), kSteps);
    const auto [loss, norm] = errors(ranks.front());
    EXPECT_LE(loss, 2 * std::max(plain_loss, floor));
    EXPECT_LE(norm, 2 * std::max(plain_norm, 10 * floor));
  }
}

TEST(PrecisionParity, Fp32) { stays_within_its_rounding("fp32", 1e-5); }
TEST(PrecisionParity, Bf16) { stays_within_its_rounding("bf16", std::ldexp(1.0, -8)); }

}  // namespace
}  // namespace assay::parity::precision
