// Pairs of runs: their order, what a stop leaves behind, and the verdicts that follow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/error.h"
#include "core/base/diagnostic.h"
#include "core/evidence/assess.h"
#include "core/host/comparisons.h"
#include "tests/core/host/harness.h"

namespace assay::host {
namespace {

using evidence::Call;
using testing::HasSubstr;

store::Cell timed_cell(int ordinal, nlohmann::json fake) {
  store::Cell cell = fake_cell(ordinal, fake);
  auto config = nlohmann::json::parse(cell.config_json);
  config["train"]["warmup_steps"] = 0;
  cell.config_json = config.dump();
  return cell;
}

evidence::Trait unknown(const std::string&, const std::string&, const std::string&) { return {}; }

class PairsTest : public testing::Test {
 protected:
  PairsTest() : study_({timed_cell(0, {}), timed_cell(1, {{"wall_s", 0.00105}})}) {
    study_.options().keys.timed = true;
  }

  void schedule(int64_t pairs, int64_t controls = 8, int stage = 1,
                evidence::Tier tier = evidence::Tier::none) {
    evidence::Design design;
    design.pairs = pairs;
    design.control_pairs = controls;
    // The machine that runs the tests may be busy: only what a test sets discards a pair.
    design.limits = {.steal_share = 0.9,
                     .pressure_share = 2,
                     .switches_floor = 1e9,
                     .clock_share = 1e9,
                     .gap_s = 1e9};
    std::vector<ComparisonPlan> plans;
    {
      const store::Reader reader(study_.database());
      plans = chosen_comparisons(reader, study_.options().study_id, "cell-0", {}, design, unknown);
    }
    for (ComparisonPlan& p : plans) p.design.tier.tier = tier;
    schedule_pairs(study_.store(), study_.options().study_id, this_env(libtorch()).machine_id,
                   plans, stage);
  }
  evidence::Comparison judged() {
    const store::Reader reader(study_.database());
    return evidence::assess_study(reader, study_.options().study_id).at(0);
  }
  static std::string libtorch() { return grid::installed_binaries().libtorch; }
  std::string order() const {
    std::string text;
    for (const RunView& run : study_.listener_ends()) text += run.slug.back();
    return text;
  }

  struct Study : FakeStudy {
    using FakeStudy::FakeStudy;
    const std::vector<RunView>& listener_ends() const {
      return const_cast<Study*>(this)->listener().ends;
    }
  } study_;
};

TEST_F(PairsTest, RunBackToBackInTheOrderABBA) {
  schedule(4, 2);
  EXPECT_EQ(study_.run().exit_code, 0);
  // measure 0 1, then control, A B, B A, control (reversed), A B, B A
  EXPECT_EQ(order(), std::string("01") + "00" + "01" + "10" + "00" + "01" + "10");
  EXPECT_EQ(study_.listener().most_running, 1);
  EXPECT_EQ(study_.count("SELECT count(*) FROM runs WHERE purpose='control'"), 4);
  EXPECT_EQ(study_.count("SELECT count(*) FROM pairs WHERE orientation='AB' AND stage=1"), 2);
  EXPECT_EQ(study_.count("SELECT count(*) FROM attempts WHERE timed=0"), 0);
}

TEST_F(PairsTest, GiveAVerdictWithItsControl) {
  schedule(10);
  study_.run();
  const evidence::Comparison c = judged();
  const evidence::Verdict* time = c.verdict("step_time");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->call, Call::slower);
  EXPECT_EQ(time->n_used, 10);
  EXPECT_NEAR(*time->change(), 0.05, 1e-9);
  EXPECT_EQ(time->control, "SAME");
  EXPECT_EQ(c.verdict("peak_allocated_bytes")->call, Call::same);
  evidence::store_verdicts(study_.store(), c);
  EXPECT_EQ(study_.count("SELECT count(*) FROM v_verdict WHERE verdict='SLOWER' AND stage=1"), 1);
  EXPECT_EQ(study_.count("SELECT count(*) FROM v_pair WHERE abs(change_pct-5)<1e-6"), 10);
}

TEST_F(PairsTest, WhatIsPlannedIsKeptAndExtended) {
  schedule(10);
  schedule(10);
  EXPECT_EQ(study_.count("SELECT count(*) FROM pairs WHERE stage=1"), 10);
  study_.run();
  schedule(14, 2);
  EXPECT_EQ(study_.count("SELECT count(*) FROM pairs WHERE stage=1"), 14);
  EXPECT_EQ(study_.count("SELECT count(*) FROM pairs WHERE stage=0"), 10);
  study_.run();
  EXPECT_EQ(study_.count("SELECT count(*) FROM attempts WHERE n>1"), 0);
  EXPECT_EQ(judged().verdict("step_time")->n_used, 14);
}

TEST_F(PairsTest, TierT1BringsTheBaselinesPerturbedRuns) {
  schedule(2, 2, 1, evidence::Tier::t1);
  schedule(2, 2, 1, evidence::Tier::t1);  // plans them once
  EXPECT_EQ(study_.run().exit_code, 0);
  EXPECT_EQ(study_.count("SELECT count(*) FROM runs WHERE purpose='envelope' AND state='ok'"), 8);
  EXPECT_EQ(study_.count("SELECT count(DISTINCT cell_id) FROM runs WHERE purpose='envelope'"), 1);
  const evidence::Comparison c = judged();
  const evidence::Verdict* loss = c.verdict("loss");
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->n_used, 8);
  EXPECT_EQ(loss->reason, "too_short");  // the fake cells have three steps
}

TEST_F(PairsTest, WithoutTierT1NothingIsPerturbed) {
  schedule(2, 2);
  EXPECT_EQ(study_.count("SELECT count(*) FROM runs WHERE purpose='envelope'"), 0);
}

TEST_F(PairsTest, AStoppedPairIsRepeatedWhole) {
  schedule(2, 0);
  study_.run();
  const int64_t second = study_.count("SELECT max(run_id) FROM runs WHERE purpose='pair'");
  study_.store().requeue_run(second);
  study_.run();
  EXPECT_EQ(study_.count("SELECT count(*) FROM attempts a JOIN runs r USING(run_id) WHERE a.n=2"
                         " AND r.purpose='pair'"),
            2);
}

TEST_F(PairsTest, APairThatWasDisturbedIsDiscarded) {
  schedule(10);
  study_.run();
  const int64_t attempt = study_.count(
      "SELECT attempt_id FROM attempts JOIN pairs ON run_b=run_id WHERE stage=1 AND idx=3");
  const std::vector<store::Metric> stolen = {
      {.name = "steal_share", .value = 0.95, .unit = "1", .formula_id = "machine.v1"}};
  study_.store().put_metrics(attempt, stolen);
  const evidence::Comparison c = judged();
  const evidence::Verdict* time = c.verdict("step_time");
  EXPECT_EQ(time->n_discarded, 1);
  EXPECT_EQ(time->call, Call::unresolved);
  EXPECT_EQ(time->reason, "too_few");
  EXPECT_THAT(c.pairs.back().quality.dump(), HasSubstr("steal_share"));
}

TEST_F(PairsTest, TheSecondStageHasRunsOfItsOwn) {
  schedule(10);
  study_.run();
  schedule(10, 8, 2);
  study_.run();
  EXPECT_EQ(study_.count("SELECT count(*) FROM pairs WHERE stage=2 AND idx>=10"), 10);
  EXPECT_EQ(study_.count("SELECT count(DISTINCT run_a) FROM pairs WHERE stage>0"), 20);
  const evidence::Comparison c = judged();
  EXPECT_EQ(c.verdict("step_time")->stage, 2);
  EXPECT_EQ(c.verdict("step_time")->call, Call::slower);
}

TEST_F(PairsTest, UntimedPairsAreRefused) {
  schedule(2);
  study_.options().keys.timed = false;
  try {
    study_.run();
    FAIL() << "untimed pairs ran";
  } catch (const DiagnosticError& e) {
    EXPECT_THAT(e.what(), HasSubstr("H06"));
  }
}

TEST_F(PairsTest, AnUnknownRecipeIsNamedWithTheNearest) {
  const store::Reader reader(study_.database());
  try {
    chosen_comparisons(reader, study_.options().study_id, "cel-0", {}, {}, unknown);
    FAIL() << "an unknown baseline was taken";
  } catch (const Error& e) {
    EXPECT_THAT(std::string(e.what()), HasSubstr("no recipe 'cel-0'"));
    EXPECT_THAT(std::string(e.hint()), HasSubstr("cell-0"));
  }
}

}  // namespace
}  // namespace assay::host
