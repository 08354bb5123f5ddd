// The figures of a run and the promises that it must have kept.
#include "core/evidence/settle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/core/store/sample_study.h"

namespace assay::evidence {
namespace {

using store::Claim;
using store::integer;
using store::real;
using store::text;

class SettleTest : public testing::Test {
 protected:
  void import(const Claim& claim, const std::vector<nlohmann::json>& rows, int64_t rank = 0) {
    sample_.store.import_rows(claim.attempt_id, rank, "spool", rows, 1000);
  }
  std::optional<double> figure(const Claim& claim, const std::string& name) {
    const auto row =
        sample_.store.query("SELECT value FROM metrics WHERE attempt_id=?1 AND name=?2 AND rank=-1",
                            {claim.attempt_id, name});
    return row.empty() ? std::nullopt : real(row.at(0, "value"));
  }
  std::string unit(const Claim& claim, const std::string& name) {
    const auto row = sample_.store.query(
        "SELECT unit || ' ' || formula_id u FROM metrics WHERE attempt_id=?1 AND name=?2 AND "
        "rank=-1",
        {claim.attempt_id, name});
    return row.empty() ? "" : *text(row.at(0, "u"));
  }
  std::vector<std::string> broken(const Claim& claim) {
    std::vector<std::string> names;
    for (const Violation& v : settle(sample_.store, claim.attempt_id).violations)
      names.push_back(v.invariant);
    return names;
  }
  Claim claim(const std::string& slug) {
    for (const auto& run : sample_.store.queued(sample_.study_id, store::kMachine)) {
      if (run.slug == slug) return sample_.claim(run.run_id).value();
    }
    throw std::logic_error("no queued run of " + slug);
  }

  store::TempFolder folder_;
  store::SampleStore sample_{folder_ / "a.db"};
};

TEST_F(SettleTest, StoresEveryFigureWithUnitAndFormula) {
  const Claim run = claim("bf16");
  import(run, store::spool_rows(run.attempt_id));
  EXPECT_TRUE(broken(run).empty());
  EXPECT_NEAR(*figure(run, "step_p50_s"), .100151032, 5e-10);
  EXPECT_NEAR(*figure(run, "step_p10_s"), .099620307, 5e-10);
  EXPECT_NEAR(*figure(run, "step_p90_s"), .100613196, 5e-10);
  EXPECT_EQ(figure(run, "used_steps"), 28);
  EXPECT_DOUBLE_EQ(*figure(run, "tokens_per_s"), 2048 / *figure(run, "step_p50_s"));
  EXPECT_DOUBLE_EQ(*figure(run, "tokens_per_s_device"), *figure(run, "tokens_per_s"));
  EXPECT_EQ(figure(run, "peak_allocated_bytes"), double(1 << 30));
  EXPECT_EQ(figure(run, "final_val_loss"), 3.25);
  EXPECT_EQ(figure(run, "final_val_loss_evaluations"), 1);
  EXPECT_DOUBLE_EQ(*figure(run, "bits_per_byte"), 3.25 / std::numbers::ln2 / 3);
  EXPECT_DOUBLE_EQ(*figure(run, "data_wait_s"), 0.001);
  EXPECT_EQ(figure(run, "comm_exposed_s"), 0);
  EXPECT_EQ(figure(run, "forward_s"), 0.04);
  EXPECT_EQ(figure(run, "wire_bytes"), 100);
  EXPECT_EQ(figure(run, "collectives"), 2);
  EXPECT_EQ(unit(run, "tokens_per_s"), "1/s tps.p50.v1");
  EXPECT_EQ(unit(run, "step_p50_s"), "s step.q7.v1");
  EXPECT_EQ(unit(run, "wire_bytes"), "bytes/step comm.bytes.v1");
}

TEST_F(SettleTest, VirtualTimeIsTheMedianOverUsedStepsOfTheSlowestRank) {
  const Claim run = claim("float8-tp2");
  for (const int rank : {0, 1}) {
    auto rows = store::spool_rows(run.attempt_id, rank, 1.0);
    for (const auto& [step, value] : {std::pair(3, 9.0), {20, 0.3}, {21, 0.5}, {22, 0.4}}) {
      const nlohmann::json sample = {{"t", "samples"},
                                     {"name", "virtual_step_s"},
                                     {"step", step},
                                     {"value", value + 0.01 * rank}};
      rows.insert(rows.end() - 1, sample);
    }
    rows.back()["rows"] = rows.size() - 1;
    import(run, rows, rank);
  }
  settle(sample_.store, run.attempt_id);
  EXPECT_DOUBLE_EQ(*figure(run, "virtual_step_s"), 0.41);
  EXPECT_EQ(unit(run, "virtual_step_s"), "s virtual.v1");
}

TEST_F(SettleTest, WhatWasNotMeasuredHasNoRow) {
  const Claim run = claim("bf16");
  import(run, store::spool_rows(run.attempt_id));
  settle(sample_.store, run.attempt_id);
  for (const char* name : {"mfu", "prediction_error", "backward_s", "optimizer_s", "virtual_step_s",
                           "peak_reserved_bytes", "saved_activation_bytes"}) {
    EXPECT_FALSE(figure(run, name)) << name;
  }
}

TEST_F(SettleTest, MarksTheUsedSteps) {
  const Claim run = claim("bf16");
  import(run, store::spool_rows(run.attempt_id));
  settle(sample_.store, run.attempt_id);
  const auto row = sample_.store.query(
      "SELECT steady_first, steady_last, steady_method, (SELECT sum(used) FROM v_step) used FROM "
      "attempts"
      " WHERE attempt_id=?1",
      {run.attempt_id});
  EXPECT_EQ(integer(row.at(0, "steady_first")), 13);
  EXPECT_EQ(integer(row.at(0, "steady_last")), 40);
  EXPECT_EQ(text(row.at(0, "steady_method")), "steady_v1");
  EXPECT_EQ(integer(row.at(0, "used")), 28);
}

TEST_F(SettleTest, TheSlowestRankSetsTheStep) {
  const Claim run = claim("float8-tp2");
  import(run, store::spool_rows(run.attempt_id, 0, 1.0), 0);
  import(run, store::spool_rows(run.attempt_id, 1, 1.5), 1);
  EXPECT_TRUE(broken(run).empty());
  EXPECT_NEAR(*figure(run, "step_p50_s"), 1.5 * .100151032, 1e-4);
  EXPECT_DOUBLE_EQ(*figure(run, "tokens_per_s_device"), *figure(run, "tokens_per_s") / 2);
}

TEST_F(SettleTest, UntimedAndResumedRunsHaveNoFigureInSeconds) {
  const Claim timed = sample_.claim().value();
  const Claim untimed = sample_.store
                            .claim({.study_id = sample_.study_id,
                                    .machine_id = store::kMachine,
                                    .supervisor_id = sample_.supervisor_id,
                                    .env_id = store::id64('e'),
                                    .timed = false})
                            .value();
  import(untimed, store::spool_rows(untimed.attempt_id));
  EXPECT_TRUE(broken(untimed).empty());
  const auto rows = sample_.store.query(
      "SELECT name FROM metrics WHERE attempt_id=?1 AND rank=-1 AND unit IN('s','1/s','s/step')",
      {untimed.attempt_id});
  EXPECT_TRUE(rows.empty()) << *text(rows.rows[0][0]);
  EXPECT_EQ(figure(untimed, "final_val_loss"), 3.25);
  EXPECT_NE(timed.run.run_id, untimed.run.run_id);
}

TEST_F(SettleTest, ControlTrafficIsLeftOut) {
  const Claim run = claim("bf16");
  auto rows = store::spool_rows(run.attempt_id);
  nlohmann::json control = {{"t", "collectives"}, {"grp", "world"},       {"op", "all_reduce"},
                            {"dtype", "float64"}, {"phase", "control"},   {"steps", 40},
                            {"count", 40},        {"payload_bytes", 999}, {"wire_bytes", 999}};
  rows.insert(rows.end() - 1, control);
  rows.back()["rows"] = rows.size() - 1;
  import(run, rows);
  settle(sample_.store, run.attempt_id);
  EXPECT_EQ(figure(run, "wire_bytes"), 100);
}

TEST_F(SettleTest, SettlingAgainReplaces) {
  const Claim run = claim("bf16");
  import(run, store::spool_rows(run.attempt_id));
  settle(sample_.store, run.attempt_id);
  const auto count = [&] {
    return integer(sample_.store.query("SELECT count(*) FROM metrics").rows[0][0]);
  };
  const auto before = count();
  settle(sample_.store, run.attempt_id);
  EXPECT_EQ(count(), before);
}

TEST_F(SettleTest, ANonFiniteLossIsFoundWithItsStep) {
  const Claim run = claim("bf16");
  auto rows = store::spool_rows(run.attempt_id);
  rows[7]["loss"] = "nan";
  import(run, rows);
  const Settled settled = settle(sample_.store, run.attempt_id);
  ASSERT_EQ(settled.violations.size(), 1u);
  EXPECT_EQ(settled.violations[0].invariant, "loss.finite");
  EXPECT_EQ(settled.violations[0].text, "the loss is not finite at step 7 (rank 0)");
}

TEST_F(SettleTest, ANonFiniteGradientNormIsNamed) {
  const Claim run = claim("bf16");
  auto rows = store::spool_rows(run.attempt_id);
  rows[4]["grad_norm"] = "inf";
  rows[4]["flags"] = 16;  // as the worker marks it
  import(run, rows);
  const Settled settled = settle(sample_.store, run.attempt_id);
  ASSERT_EQ(settled.violations.size(), 1u);
  EXPECT_EQ(settled.violations[0].text, "the gradient norm is not finite at step 4 (rank 0)");
}

TEST_F(SettleTest, RanksThatDisagreeOnTheLossAreFound) {
  const Claim run = claim("float8-tp2");
  import(run, store::spool_rows(run.attempt_id, 0), 0);
  auto rows = store::spool_rows(run.attempt_id, 1);
  rows[9]["loss"] =
      std::nextafter(rows[9]["loss"].get<double>(), 9.0);  // one unit in the last place
  import(run, rows, 1);
  EXPECT_EQ(broken(run), std::vector<std::string>{"loss.ranks"});
}

TEST_F(SettleTest, MissingStepsTokensAndSpoolsAreFound) {
  const Claim missing = claim("bf16");
  auto rows = store::spool_rows(missing.attempt_id);
  rows.erase(rows.begin() + 20);
  rows.back()["rows"] = rows.size() - 1;
  import(missing, rows);
  EXPECT_EQ(broken(missing), std::vector<std::string>{"steps"});

  const Claim tokens = claim("float8");
  rows = store::spool_rows(tokens.attempt_id);
  rows[3]["tokens"] = 2047;
  import(tokens, rows);
  EXPECT_EQ(broken(tokens), std::vector<std::string>{"tokens"});

  const Claim spool = claim("float8-tp2");  // rank 1 left nothing
  import(spool, store::spool_rows(spool.attempt_id, 0), 0);
  EXPECT_EQ(broken(spool), std::vector<std::string>{"spool"});
}

}  // namespace
}  // namespace assay::evidence
