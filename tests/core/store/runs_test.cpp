// The plan in the database, the queue of runs, and the life of an attempt.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "assay/error.h"
#include "core/store/reader.h"
#include "tests/core/store/sample_study.h"

namespace assay::store {
namespace {

TEST(Plan, IsStoredWhole) {
  TempFolder folder;
  SampleStore sample(folder / "a.db");
  Reader reader(folder / "a.db");
  const StudyInfo study = reader.study("layouts");
  EXPECT_EQ(study.cells, 3);
  EXPECT_EQ(study.nuisance_json, R"(["seed"])");
  const Table skip = reader.query("SELECT * FROM plan_skips");
  ASSERT_EQ(skip.rows.size(), 1u);
  EXPECT_EQ(text(skip.at(0, "rule_id")), "R-TPHEADS");
  EXPECT_EQ(integer(skip.at(0, "line")), 9);
  EXPECT_EQ(reader.query("SELECT * FROM cell_axis").rows.size(), 6u);
  EXPECT_EQ(text(reader.query("SELECT value_json FROM cell_axis WHERE key='mesh.tp' AND label='2'")
                     .rows[0][0]),
            "2");
}

TEST(Plan, TheSameFilePlannedAgainKeepsItsRuns) {
  TempFolder folder;
  SampleStore sample(folder / "a.db");
  Study again = sample_study();
  again.cells.pop_back();
  again.cells[0].repeats = 3;
  EXPECT_EQ(sample.store.add_study(again), sample.study_id);
  EXPECT_EQ(sample.store.ensure_runs(sample.study_id, kMachine), 1);  // the third repeat alone
  EXPECT_EQ(sample.store.query("SELECT * FROM study_cells").rows.size(), 2u);
  EXPECT_EQ(sample.store.query("SELECT * FROM runs").rows.size(), 7u);
}

TEST(Plan, CellsAreSharedBetweenStudies) {
  TempFolder folder;
  SampleStore sample(folder / "a.db");
  const int64_t other = sample.store.add_study(sample_study("second"));
  EXPECT_NE(other, sample.study_id);
  EXPECT_EQ(sample.store.ensure_runs(other, kMachine), 0);  // the runs serve both
  EXPECT_EQ(sample.store.ensure_runs(other, "another machine"), 6);
}

TEST(Plan, PluginsAndEnvironmentsAreStoredOnce) {
  TempFolder folder;
  SampleStore sample(folder / "a.db");
  const Plugin lion{"lion", "optim", "1.0.0", 1, "/p/lion.assay.so", id64('f'), "Release"};
  const int64_t id = sample.store.add_plugin(lion);
  EXPECT_EQ(sample.store.add_plugin(lion), id);
  sample.store.add_env(sample_env());
  EXPECT_EQ(sample.store.query("SELECT * FROM env").rows.size(), 1u);
}

TEST(Queue, RunsEveryCellOnceBeforeAnyTwice) {
  TempFolder folder;
  SampleStore sample(folder / "a.db");
  std::vector<std::string> order;
  for (const QueuedRun& run : sample.store.queued(sample.study_id, kMachine)) {
    order.push_back(run.slug + std::to_string(run.slot));
  }
  EXPECT_EQ(order, (std::vector<std::string>{"bf160", "float80", "float8-tp20", "bf161", "float81",
                                             "float8-tp21"}));
}

TEST(Queue, AClaimTakesTheRunAndWritesItsAttempt) {
  TempFolder folder;
  SampleStore sample(folder / "a.db");
  const Claim claim = sample.claim().value();
  EXPECT_EQ(claim.run.slug, "bf16");
  EXPECT_EQ(claim.n, 1);
  const Table row = sample.store.query("SELECT state, attempts, timed FROM v_run WHERE run_id=?1",
                                       {claim.run.run_id});
  EXPECT_EQ(text(row.at(0, "state")), "running");
  EXPECT_EQ(integer(row.at(0, "timed")), 1);
  EXPECT_FALSE(sample.claim(claim.run.run_id).has_value());  // no longer queued
  EXPECT_EQ(sample.claim()->run.slug, "float8");
}

TEST(Queue, EightSupervisorsShareItWithoutLockErrors) {
  TempFolder folder;
  const auto file = folder / "a.db";
  SampleStore sample(file);
  for (int64_t slot = 2; slot < 20; ++slot) {
    for (const char id : {'a', 'b', 'c'})
      sample.store.ensure_run(id64(id), kMachine, "measure", 0, slot);
  }
  std::atomic<int> claims = 0, errors = 0;
  std::mutex mutex;
  std::set<int64_t> taken;
  const auto work = [&] {
    try {
      Store store(file);
      while (const auto claim = store.claim({.study_id = sample.study_id,
                                             .machine_id = kMachine,
                                             .supervisor_id = sample.supervisor_id,
                                             .env_id = id64('e')})) {
        ++claims;
        const std::lock_guard lock(mutex);
        taken.insert(claim->run.run_id);
      }
    } catch (const std::exception&) {
      ++errors;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(claims, 60);
  EXPECT_EQ(taken.size(), 60u);
}

TEST(Attempt, EndsWithItsEvidenceAndSetsTheRun) {
  TempFolder folder;
  SampleStore sample(folder / "a.db");
  const Claim claim = sample.claim().value();
  sample.store.start_attempt(claim.attempt_id,
                             {.pgid = 10, .pid = 11, .pid_start = 12, .log_path = "log"});
  sample.store.heartbeat(claim.attempt_id,
                         {.last_phase = "step", .last_step = 7, .last_bytes = 99});
  sample.store.heartbeat(claim.attempt_id, {.last_step = 8});
  const auto open = sample.store.open_attempts(sample.study_id);
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].pid, 11);
  EXPECT_EQ(open[0].slug, "bf16");
  EXPECT_EQ(open[0].supervisor.boot_id, "boot");
  EXPECT_EQ(open[0].supervisor.argv.at(1), "run");
  sample.store.finish_attempt(
      claim.attempt_id, {.state = "oom", .exit_code = 12, .reason = "out of memory in step 8"});
  EXPECT_TRUE(sample.store.open_attempts({}).empty());
  const Table row = sample.store.query(
      "SELECT r.state, a.last_phase, a.last_step, a.last_bytes, a.exit_code, a.ended_us IS NOT NULL"
      " ended, a.log_path FROM attempts a JOIN runs r USING(run_id) WHERE attempt_id=?1",
      {claim.attempt_id});
  EXPECT_EQ(text(row.at(0, "state")), "oom");
  EXPECT_EQ(text(row.at(0, "last_phase")), "step");
  EXPECT_EQ(integer(row.at(0, "last_step")), 8);
  EXPECT_EQ(integer(row.at(0, "last_bytes")), 99);
  EXPECT_EQ(integer(row.at(0, "exit_code")), 12);
  EXPECT_EQ(integer(row.at(0, "ended")), 1);
  EXPECT_EQ(text(row.at(0, "log_path")), "log");
}

TEST(Attempt, AStateOutsideTheListIsRefused) {
  TempFolder folder;
  SampleStore sample(folder / "a.db");
  const Claim claim = sample.claim().value();
  EXPECT_THROW(sample.store.finish_attempt(claim.attempt_id, {.state = "exploded"}), Error);
  EXPECT_EQ(sample.store.open_attempts({}).size(), 1u);
}

TEST(Attempt, ResumeQueuesAgainAndTheNewestAttemptCounts) {
  TempFolder folder;
  SampleStore sample(folder / "a.db");
  const Claim first = sample.claim().value();
  sample.store.finish_attempt(first.attempt_id, {.state = "killed"});
  const std::vector<std::string> states = {"killed", "infra"};
  EXPECT_EQ(sample.store.requeue(sample.study_id, kMachine, states), 1);
  EXPECT_EQ(sample.store.requeue(sample.study_id, kMachine, states), 0);
  const Claim second = sample.claim(first.run.run_id).value();
  EXPECT_EQ(second.n, 2);
  sample.store.finish_attempt(second.attempt_id, {.state = "ok"});
  sample.store.finish_attempt(first.attempt_id, {.state = "infra"});  // late news of the old one
  const Table row =
      sample.store.query("SELECT state, attempts FROM v_run WHERE run_id=?1", {first.run.run_id});
  EXPECT_EQ(text(row.at(0, "state")), "ok");
  EXPECT_EQ(integer(row.at(0, "attempts")), 2);
}

TEST(Supervisors, AreOpenUntilEnded) {
  TempFolder folder;
  SampleStore sample(folder / "a.db");
  ASSERT_EQ(sample.store.open_supervisors(sample.study_id).size(), 1u);
  EXPECT_TRUE(sample.store.open_supervisors(sample.study_id + 1).empty());
  sample.store.heartbeat_supervisor(sample.supervisor_id);
  sample.store.end_supervisor(sample.supervisor_id, "done");
  EXPECT_TRUE(sample.store.open_supervisors({}).empty());
}

}  // namespace
}  // namespace assay::store
