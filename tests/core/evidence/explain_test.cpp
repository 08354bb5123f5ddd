// Steps split into parts, and medians over the used ones.
#include "core/evidence/explain.h"

#include <gtest/gtest.h>

#include <map>

#include "assay/error.h"
#include "core/evidence/settle.h"
#include "tests/core/store/sample_study.h"

namespace assay::evidence {
namespace {

using store::SampleStore;
using store::TempFolder;

double sum(const StepSplit& split) {
  double total = 0;
  for (const auto& [part, seconds] : split.parts) total += seconds;
  return total;
}

TEST(SplitStep, PartsAddUpToTheWhole) {
  const StepSplit split = split_step(1.0,
                                     {{Part::data_wait, 0.05},
                                      {Part::forward, 0.3},
                                      {Part::backward, 0.5},
                                      {Part::optimizer, 0.1},
                                      {Part::comm, 0.2}},
                                     {.forward = 0.25, .backward = 0.75});
  EXPECT_DOUBLE_EQ(sum(split), 1.0);
  EXPECT_DOUBLE_EQ(split.parts.at(Part::forward), 0.25);
  EXPECT_DOUBLE_EQ(split.parts.at(Part::backward), 0.35);
  EXPECT_DOUBLE_EQ(split.parts.at(Part::optimizer), 0.1);
  EXPECT_DOUBLE_EQ(split.parts.at(Part::comm), 0.2);
  EXPECT_NEAR(split.parts.at(Part::rest), 0.05, 1e-12);
}

TEST(SplitStep, CommunicationIsTakenOnlyOutOfRecordedParts) {
  const StepSplit split =
      split_step(1.0, {{Part::forward, 0.3}, {Part::comm, 0.2}}, {.forward = 0.5, .backward = 0.5});
  EXPECT_DOUBLE_EQ(sum(split), 1.0);
  EXPECT_DOUBLE_EQ(split.parts.at(Part::comm), 0.1);
  EXPECT_FALSE(split.parts.contains(Part::backward));
}

TEST(SplitStep, WithoutSharesCommunicationStaysWhereItWas) {
  const StepSplit split = split_step(1.0, {{Part::forward, 0.3}, {Part::comm, 0.0}}, {});
  EXPECT_DOUBLE_EQ(split.parts.at(Part::forward), 0.3);
  EXPECT_DOUBLE_EQ(split.parts.at(Part::comm), 0.0);
  EXPECT_DOUBLE_EQ(split.parts.at(Part::rest), 0.7);
}

/// One settled run of the sample study whose backward pass takes `backward_s`.
class Explain : public testing::Test {
 protected:
  int64_t run(double backward_s, bool with_forward = true,
              const std::map<std::string, double>& metrics = {}) {
    const auto claim = sample_.claim().value();
    auto rows = store::spool_rows(claim.attempt_id, 0, 1);
    rows.pop_back();  // the close row stays the last
    std::erase_if(rows, [](const auto& row) { return row.value("name", "") == "forward_s"; });
    for (int64_t step = 1; step <= 40; ++step) {
      const auto add = [&](const char* name, double value) {
        rows.push_back({{"t", "samples"}, {"name", name}, {"step", step}, {"value", value}});
      };
      if (with_forward) add("forward_s", 0.02);
      add("backward_s", backward_s);
      add("optimizer_s", 0.005);
    }
    for (const auto& [name, value] : metrics) {
      rows.push_back({{"t", "metrics"},
                      {"name", name},
                      {"value", value},
                      {"unit", "s"},
                      {"formula_id", "op.v1"}});
    }
    rows.push_back({{"t", "close"}, {"rows", rows.size()}, {"outcome", "ok"}});
    sample_.store.import_rows(claim.attempt_id, 0, "spool", rows, 1000);
    settle(sample_.store, claim.attempt_id);
    sample_.store.finish_attempt(claim.attempt_id, {.state = "ok"});
    return claim.run.run_id;
  }
  Breakdown of(int64_t run_id) {
    const store::Reader reader(folder_ / "a.db");
    const std::vector<int64_t> ids = {run_id};
    const std::vector<RunRecord> runs = {load_runs(reader, ids).at(run_id)};
    return break_down(reader, runs);
  }

  TempFolder folder_;
  SampleStore sample_{folder_ / "a.db"};
};

TEST_F(Explain, FindsTheBackwardPassThatGrew) {
  const Breakdown a = of(run(0.05)), b = of(run(0.06));
  EXPECT_GT(a.steps, 10);
  EXPECT_NEAR(a.parts.at(Part::backward), 0.05, 1e-12);
  EXPECT_NEAR(b.parts.at(Part::backward) - a.parts.at(Part::backward), 0.01, 1e-12);
  EXPECT_NEAR(a.parts.at(Part::forward), 0.02, 1e-12);
  EXPECT_NEAR(a.parts.at(Part::data_wait), 0.001, 1e-12);
  // The only part that varies from step to step here is the rest: medians add up exactly.
  EXPECT_NEAR(a.parts_s(), a.wall_s, 1e-12);
  EXPECT_NEAR(b.parts_s(), b.wall_s, 1e-12);
}

TEST_F(Explain, WhatWasNotRecordedIsAbsentAndInTheRest) {
  const Breakdown b = of(run(0.05, false));
  EXPECT_FALSE(b.parts.contains(Part::forward));
  EXPECT_NEAR(b.parts_s(), b.wall_s, 1e-12);
}

TEST_F(Explain, TrafficIsPerStepAndGroup) {
  const Breakdown b = of(run(0.05));
  ASSERT_EQ(b.traffic.size(), 1u);
  EXPECT_EQ(b.traffic[0].group, "tp");
  EXPECT_EQ(b.traffic[0].phase, "backward");
  EXPECT_DOUBLE_EQ(b.traffic[0].calls, 2);
  EXPECT_DOUBLE_EQ(b.traffic[0].payload_bytes, 100);
  EXPECT_FALSE(b.traffic[0].exposed_s.has_value());
}

TEST_F(Explain, OperatorsAndWhatLiesOutsideThem) {
  const Breakdown b = of(run(0.05, true,
                             {{"op_s.aten::mm", 0.03},
                              {"op_calls.aten::mm", 12},
                              {"op_s.other", 0.01},
                              {"op_calls.other", 40},
                              {"op_step_s", 0.05}}));
  ASSERT_EQ(b.operators.size(), 3u);
  EXPECT_EQ(b.operators.at("aten::mm").calls, 12);
  EXPECT_DOUBLE_EQ(b.operators.at("aten::mm").self_s, 0.03);
  EXPECT_DOUBLE_EQ(b.operators.at("other").self_s, 0.01);
  EXPECT_NEAR(b.operators.at("outside operators").self_s, 0.01, 1e-12);
  EXPECT_TRUE(of(run(0.05)).operators.empty());
}

TEST_F(Explain, ARunWithoutStepsIsNoBreakdown) {
  const store::Reader reader(folder_ / "a.db");
  EXPECT_THROW(break_down(reader, std::vector<RunRecord>{{.run_id = 1, .state = "fail"}}), Error);
}

}  // namespace
}  // namespace assay::evidence
