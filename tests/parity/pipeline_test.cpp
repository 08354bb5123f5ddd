// Pipelines: every schedule gives the numbers of accumulation on one rank, messages and live chunks
// as the closed forms say.
#include <gtest/gtest.h>

#include "assay/pipeline.h"
#include "layouts.h"

namespace assay::parity::pipeline {
namespace {

using nlohmann::json;

constexpr int64_t kSteps = 3;

json pp(const std::string& schedule, json options = json::object()) {
  options["name"] = "pp";
  options["schedule"] = schedule;
  return {{"pp", options}};
}

json eight_layers() {
  json config = base_config();
  config["model"]["layers"] = 8;
  config["train"]["max_norm"] = 0.0;  // ranks' sums of squares are added: the norm has other bits
  return config;
}

const RankOutcome& one_rank() {
  static const RankOutcome one = run(eight_layers(), kSteps).front();
  return one;
}

void expect_equal_bits(const std::vector<RankOutcome>& ranks) {
  const Distance d = distance(ranks, one_rank());
  EXPECT_EQ(d.loss, 0);
  EXPECT_EQ(d.weights, 0);
  EXPECT_LE(d.norm, 1e-13);
  EXPECT_EQ(d.eval, 0);
}

/// Microbatches are taken in ascending order: the bits of accumulation (recipes 0.3).
TEST(Pipeline, GivesTheBitsOfAccumulation) {
  for (const char* name : {"gpipe", "1f1b", "interleaved_1f1b", "interleaved_zb", "zbv"}) {
    for (const int64_t ranks : {2, 4}) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(ranks) + " ranks");
      const json options = {{"first_less_layers", 0}, {"last_less_layers", 0}};
      expect_equal_bits(
          run(layout("pp=" + std::to_string(ranks), pp(name, options), eight_layers()), kSteps));
    }
  }
}

TEST(Pipeline, DualPipeVGivesTheBitsOfAccumulation) {
  expect_equal_bits(
      run(layout("pp=2", pp("dualpipev", {{"first_less_layers", 0}, {"last_less_layers", 0}}),
                 eight_layers()),
          kSteps));
}

/// Its backwards run in descending order: other sums.
TEST(Pipeline, LoopedBreadthFirstGivesTheNumbers) {
  const Distance d =
      distance(run(layout("pp=2", pp("looped_bfs"), eight_layers()), kSteps), one_rank());
  EXPECT_LE(d.loss, 1e-10);
  EXPECT_LE(d.norm, 1e-10);
  EXPECT_LE(d.weights, 1e-8);
}

struct Composition {
  const char* mesh;
  json components;
};

TEST(Pipeline, ComposesWithEveryOtherSplit) {
  const json ddp = {{"name", "ddp"}}, fsdp = {{"name", "fsdp"}, {"unshard", "poison"}},
             tp = {{"name", "tp"}}, plain_tp = {{"name", "tp"}, {"sp", false}},
             zero1 = {{"name", "zero1"}}, zero2 = {{"name", "zero2"}};
  const json stages = {{"name", "pp"}, {"schedule", "1f1b"}};
  const json zb = {{"name", "pp"}, {"schedule", "interleaved_zb"}, {"v", 2}};
  for (const Composition& c : {
           Composition{"pp=2 dp_replicate=2", {{"pp", stages}, {"dp_replicate", ddp}}},
           {"pp=2 dp_shard=2", {{"pp", stages}, {"dp_shard", fsdp}}},
           {"pp=2 dp_shard=2", {{"pp", zb}, {"dp_shard", fsdp}}},
           {"pp=2 dp_shard=2", {{"pp", stages}, {"dp_shard", zero1}}},
           {"pp=2 dp_shard=2", {{"pp", stages}, {"dp_shard", zero2}}},
           {"pp=2 tp=2", {{"pp", stages}, {"tp", tp}}},
           {"pp=2 tp=2", {{"pp", zb}, {"tp", tp}}},
           {"pp=2 tp=2", {{"pp", stages}, {"tp", plain_tp}}},
           {"pp=2 dp_shard=2 tp=2", {{"pp", zb}, {"dp_shard", fsdp}, {"tp", tp}}},
           {"pp=2 dp_replicate=2 dp_shard=2",
            {{"pp", stages}, {"dp_replicate", ddp}, {"dp_shard", fsdp}}},
       }) {
    SCOPED_TRACE(c.mesh + c.components.dump());
    const Distance d =
        distance(run(layout(c.mesh, c.components, eight_layers()), kSteps), one_rank());
    EXPECT_LE(d.loss, 1e-10);
    EXPECT_LE(d.norm, 1e-10);
    EXPECT_LE(d.eval, 1e-10);
    EXPECT_LE(d.weights, 1e-8);
  }
}

TEST(Pipeline, RecomputesLikeOneRank) {
  for (const char* memory : {"full", "selective_op"}) {
    json config = layout("pp=2", pp("interleaved_zb"), eight_layers());
    config["memory"] = {{"name", memory}};
    expect_equal_bits(run(config, kSteps));
  }
}

/// Messages of T d e bytes, 2 m v per rank without what the ends do not send; parameters are made
/// whole and gradients reduced once per step.
TEST(Pipeline, MessagesAndGathersAreThoseOfTheSchedule) {
  constexpr int64_t kMicrobatches = 8, kMessage = 16 * 32 * 8;
  const auto ranks = run(layout("pp=2", pp("1f1b"), eight_layers()), 1);
  for (const RankOutcome& rank : ranks) {
    for (const Traffic& t : rank.traffic) {
      ASSERT_EQ(t.group, "pp");
      if (t.op != "send") continue;
      EXPECT_EQ(t.count, kMicrobatches);
      EXPECT_EQ(t.wire_bytes, kMicrobatches * kMessage);
    }
  }
  EXPECT_EQ(ranks[0].counters.at("pipeline.peak_live_chunks"), 2);  // min(m, p - r)
  EXPECT_EQ(ranks[1].counters.at("pipeline.peak_live_chunks"), 1);

  const auto sharded = run(
      layout("pp=2 dp_shard=2",
             {{"pp", {{"name", "pp"}, {"schedule", "gpipe"}}}, {"dp_shard", {{"name", "fsdp"}}}},
             eight_layers()),
      1);
  for (const RankOutcome& rank : sharded) {
    EXPECT_EQ(rank.counters.at("fsdp.reduce_scatters"), 5);  // a unit per block of the stage, once
    EXPECT_EQ(rank.counters.at("pipeline.peak_live_chunks"), 4);
  }
}

TEST(Pipeline, RefusesWhatTheScheduleCannotDo) {
  json config = layout("pp=4", pp("1f1b"), eight_layers());
  config["train"]["micro_batch"] = 4;  // 2 microbatches on 4 ranks
  EXPECT_THROW(run(config, 1), Error);
  EXPECT_THROW(run(layout("pp=2", pp("1f1b", {{"v", 2}}), eight_layers()), 1), Error);
}

}  // namespace
}  // namespace assay::parity::pipeline
