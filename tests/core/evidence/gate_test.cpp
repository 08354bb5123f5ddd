// The gate's judgement: codes, limits, two stages, acceptances, and that nothing measured never
// passes.
#include "core/evidence/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "assay/error.h"

namespace assay::evidence {
namespace {

using nlohmann::json;
using enum GateOutcome;

GateCell cell() {
  return {.label = "bf16",
          .config_id = "c1",
          .cand_cell = "cell-b",
          .base_state = "ok",
          .cand_state = "ok",
          .base = {{"peak_allocated_bytes", 1000}, {"wire_bytes", 64}, {"loss_bits", 7}},
          .candidate = {{"peak_allocated_bytes", 1000}, {"wire_bytes", 64}, {"loss_bits", 7}}};
}

void set(GateCell& c, const std::string& metric, double value) {
  for (auto& [name, v] : c.candidate) {
    if (name == metric) v = value;
  }
}

Verdict time(int stage, Call call, double change = 0.03) {
  return {.metric = "step_time",
          .stage = stage,
          .call = call,
          .n_used = 20,
          .estimate = std::log1p(change),
          .mde = 0.011};
}

GateOutcome outcome(const GateCell& c, const std::vector<Accepted>& accepted = {},
                    const json& section = nullptr, bool gate_time = false) {
  return worst(judge_gate(gate_rule(section), {c}, accepted, gate_time));
}

TEST(Gate, EqualBuildsPass) { EXPECT_EQ(outcome(cell()), pass); }

TEST(Gate, NothingMeasuredIsNeverGreen) {
  EXPECT_EQ(worst({}), nothing);
  GateCell empty = cell();
  empty.base.clear();
  EXPECT_EQ(outcome(empty), nothing);
  GateCell never = cell();
  never.base_state = "never run";
  EXPECT_EQ(outcome(never), nothing);
  GateCell no_pairs = cell();
  EXPECT_EQ(outcome(no_pairs, {}, nullptr, true), nothing) << "time is gated and no pair ran";
}

TEST(Gate, AListedMetricMustHaveBeenMeasured) {
  EXPECT_EQ(outcome(cell(), {}, {{"metrics", {"wire_bytes", "flops_per_token"}}}), nothing);
  EXPECT_EQ(outcome(cell(), {}, {{"metrics", {"wire_bytes"}}}), pass);
}

TEST(Gate, AFigureWithoutAcceptedValueSaysHowToAcceptIt) {
  GateCell one_build = cell();
  one_build.base.clear();
  const GateRule rule = gate_rule({{"metrics", {"wire_bytes", "flops_per_token"}}});
  const auto findings = judge_gate(rule, {one_build}, {}, false);
  EXPECT_EQ(worst(findings), nothing);
  const auto text = [&](const std::string& metric) {
    for (const GateFinding& f : findings) {
      if (f.metric == metric && f.cell == "all cells") return f.text;
    }
    return std::string();
  };
  EXPECT_EQ(text("wire_bytes"), "no accepted value to hold it to: assay gate accept");
  EXPECT_EQ(text("flops_per_token"), "listed in gate.metrics, measured in no cell");
}

TEST(Gate, CountsMayNotGrowAndPeaksHardly) {
  GateCell c = cell();
  set(c, "wire_bytes", 65);
  EXPECT_EQ(outcome(c), regression);
  c = cell();
  set(c, "wire_bytes", 60);
  EXPECT_EQ(outcome(c), pass);
  set(c, "peak_allocated_bytes", 1005);
  EXPECT_EQ(outcome(c), pass);
  set(c, "peak_allocated_bytes", 1006);
  EXPECT_EQ(outcome(c), regression);
}

TEST(Gate, LossBitsMayNotChange) {
  GateCell c = cell();
  set(c, "loss_bits", 8);
  EXPECT_EQ(outcome(c), regression);
}

TEST(Gate, AnAnchorStopsSlowDrift) {
  GateCell c = cell();
  c.anchors = {{.name = "release", .metric = "wire_bytes", .value = 60}};
  const auto findings = judge_gate(gate_rule(nullptr), {c}, {}, false);
  EXPECT_EQ(worst(findings), regression);
  c.anchors.front().value = 64;
  EXPECT_EQ(outcome(c), pass);
}

TEST(Gate, ARecordClearsTheValueItNames) {
  GateCell c = cell();
  set(c, "wire_bytes", 80);
  Accepted record{.config_id = "c1", .metric = "wire_bytes", .new_value = 80, .reason = "needed"};
  const auto findings = judge_gate(gate_rule(nullptr), {c}, {record}, false);
  EXPECT_EQ(worst(findings), pass);
  EXPECT_EQ(findings[1].accepted + findings[2].accepted, "needed");
  record.new_value = 79;
  EXPECT_EQ(outcome(c, {record}), regression);
  record.new_value = 80;
  record.config_id = "c2";
  EXPECT_EQ(outcome(c, {record}), regression);
}

TEST(Gate, TheLastRecordIsAnAnchorOfItsOwn) {
  GateCell c = cell();
  c.base.clear();  // one build, held to what was accepted
  EXPECT_EQ(outcome(c), nothing) << "nothing to hold it to";
  const Accepted high{
      .config_id = "c1", .metric = "wire_bytes", .new_value = 100, .reason = "first"};
  EXPECT_EQ(outcome(c, {high}), pass);
  Accepted low = high;
  low.new_value = 60;
  low.reason = "tightened";
  EXPECT_EQ(outcome(c, {high, low}), regression) << "an older, larger record clears nothing";
  EXPECT_EQ(outcome(c, {low, high}), pass);
  const Accepted bits{
      .config_id = "c1", .metric = "loss_bits", .new_value = 8, .reason = "new kernel"};
  EXPECT_EQ(outcome(c, {bits}), regression);
}

TEST(Gate, TimeNeedsBothStages) {
  GateCell c = cell();
  c.verdicts = {time(1, Call::slower)};
  EXPECT_TRUE(fires({c}));
  EXPECT_EQ(outcome(c, {}, nullptr, true), unresolved) << "stage 2 has not run";
  c.verdicts.push_back(time(2, Call::same));
  EXPECT_EQ(outcome(c, {}, nullptr, true), unresolved);
  c.verdicts.back() = time(2, Call::slower, 0.025);
  const auto findings = judge_gate(gate_rule(nullptr), {c}, {}, true);
  EXPECT_EQ(worst(findings), regression);
  EXPECT_THAT(findings.front().text, testing::HasSubstr("+2.50 %")) << "the figure of stage 2";
  EXPECT_EQ(outcome(c, {}, {{"two_stage", false}}, true), regression);
}

TEST(Gate, BeingFasterNeverFails) {
  GateCell c = cell();
  c.verdicts = {time(1, Call::faster, -0.1)};
  EXPECT_FALSE(fires({c}));
  EXPECT_EQ(outcome(c, {}, nullptr, true), pass);
}

TEST(Gate, UnresolvedAndInvalidPairsAreNoPass) {
  for (const Call call : {Call::unresolved, Call::invalid}) {
    GateCell c = cell();
    c.verdicts = {time(1, call)};
    EXPECT_EQ(outcome(c, {}, nullptr, true), unresolved) << name_of(call);
  }
}

TEST(Gate, AcceptedTimeIsThatOfOneBuild) {
  GateCell c = cell();
  c.verdicts = {time(1, Call::slower), time(2, Call::slower)};
  Accepted record{.config_id = "c1",
                  .metric = "step_time",
                  .new_value = 1,
                  .cell_id = "cell-b",
                  .reason = "exact softmax"};
  EXPECT_EQ(outcome(c, {record}, nullptr, true), pass);
  record.cell_id = "cell-a";
  EXPECT_EQ(outcome(c, {record}, nullptr, true), regression);
}

TEST(Gate, ACandidateThatFailsIsARegressionAnInfraFaultIsNot) {
  GateCell c = cell();
  for (const char* state : {"fail", "oom", "timeout", "invalid"}) {
    c.cand_state = state;
    EXPECT_EQ(outcome(c), regression) << state;
  }
  c.base_state = c.cand_state = "oom";
  EXPECT_EQ(outcome(c), nothing) << "no other cell was measured";
  c.cand_state = "ok";
  EXPECT_EQ(outcome(c), pass);
  c = cell();
  c.cand_state = "infra";
  EXPECT_EQ(outcome(c), nothing);
}

TEST(Gate, TheFirstOfTwoOneFourThreeCounts) {
  const auto with = [](std::initializer_list<GateOutcome> list) {
    std::vector<GateFinding> findings;
    for (const GateOutcome o : list) findings.push_back({.outcome = o});
    return worst(findings);
  };
  EXPECT_EQ(with({pass, unresolved, nothing, regression, usage}), usage);
  EXPECT_EQ(with({pass, unresolved, nothing, regression}), regression);
  EXPECT_EQ(with({pass, unresolved, nothing}), nothing);
  EXPECT_EQ(with({pass, unresolved}), unresolved);
}

TEST(Gate, ReadsItsSection) {
  const GateRule rule =
      gate_rule({{"metrics", {"step_time"}}, {"min_effect", "3%"}, {"pairs", 12}});
  EXPECT_TRUE(rule.gates("step_time"));
  EXPECT_FALSE(rule.gates("wire_bytes"));
  EXPECT_EQ(rule.design().rule.min_effect, 0.03);
  EXPECT_EQ(rule.design().rule.alpha, 0.005);
  EXPECT_TRUE(rule.design().rule.above_mde);
  EXPECT_EQ(rule.design().pairs, 12);
  EXPECT_EQ(gate_rule({{"metrics", {"wire_bytes"}}}).design().pairs, 0);
}

TEST(Gate, RefusesWhatItDoesNotKnow) {
  const auto message = [](const json& section) {
    try {
      gate_rule(section);
      return std::string("accepted");
    } catch (const Error& e) {
      return std::string(e.what()) + " / " + std::string(e.hint());
    }
  };
  EXPECT_THAT(message({{"metrics", {"wire_byte"}}}),
              testing::AllOf(testing::HasSubstr("no metric 'wire_byte'"),
                             testing::HasSubstr("wire_bytes")));
  EXPECT_THAT(message({{"min_efect", 0.1}}), testing::HasSubstr("min_effect"));
  EXPECT_THAT(message({{"pairs", 7}}), testing::HasSubstr("even, from 8 to 1000"));
  EXPECT_THAT(message({{"min_effect", "much"}}), testing::HasSubstr("a share such as 2%"));
}

TEST(Gate, AcceptancesSurviveTheirFile) {
  const Accepted record{.config_id = "c1",
                        .metric = "wire_bytes",
                        .old_value = 64,
                        .new_value = 80,
                        .cell_id = "cell-b",
                        .commit = "c0ffee",
                        .author = "ci",
                        .reason = "needed",
                        .made = "2026-01-01T00:00:00Z"};
  EXPECT_EQ(to_json(accepted_from_json(to_json(record))), to_json(record));
  EXPECT_THROW(accepted_from_json({{"config_id", "c"}, {"metric", "m"}, {"new_value", 1}}), Error);
  json silent = to_json(record);
  silent["reason"] = "";
  EXPECT_THROW(accepted_from_json(silent), Error);
}

}  // namespace
}  // namespace assay::evidence
