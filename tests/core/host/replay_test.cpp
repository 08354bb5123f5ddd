// A stored run again: same bits, changed plugins, files that are gone, runs that failed.
#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/error.h"
#include "core/evidence/loss.h"
#include "core/evidence/run_record.h"
#include "tests/core/host/replay_study.h"

namespace assay::host {
namespace {

using evidence::Call;
using evidence::Tier;
using testing::HasSubstr;

evidence::Verdict judged(const ReplayStudy& study, int64_t again, Tier tier = Tier::t0) {
  const store::Reader reader(study.database());
  const std::vector<int64_t> ids = {1, again};
  const auto runs = evidence::load_runs(reader, ids);
  return evidence::judge_again(reader, tier, runs.at(1), runs.at(again));
}

std::string changed_names(const Replay& replay) {
  std::string names;
  for (const Changed& c : replay.changed) names += c.name + " ";
  return names;
}

TEST(Replay, GivesTheSameBits) {
  ReplayStudy study;
  study.run();
  const Replay plan = study.plan();
  EXPECT_TRUE(plan.changed.empty()) << changed_names(plan);
  EXPECT_TRUE(plan.same_binaries());
  const int64_t again = study.replay();
  EXPECT_EQ(study.count("SELECT count(*) FROM runs WHERE purpose='replay' AND state='ok'"), 1);
  EXPECT_EQ(study.count("SELECT count(DISTINCT cell_id) FROM runs"), 1);
  const auto verdict = judged(study, again);
  EXPECT_EQ(verdict.call, Call::parity) << verdict.reason;
  EXPECT_EQ(verdict.n_used, kSteps);
}

TEST(Replay, EntersNoVerdictAndNoMeasurement) {
  ReplayStudy study;
  study.run();
  study.replay();
  const store::Reader reader(study.database());
  EXPECT_EQ(evidence::ok_runs(reader, study.plan().cell.cell_id), std::vector<int64_t>{1});
  EXPECT_EQ(study.count("SELECT runs FROM v_cell"), 1);
}

TEST(Replay, AnotherBitOfALossDoesNotAgree) {
  ReplayStudy study;
  study.run();
  const int64_t again = study.replay();
  SQLite::Database(study.database().string(), SQLite::OPEN_READWRITE)
      .exec(
          "UPDATE steps SET loss_bits=loss_bits+1 WHERE step=2 AND attempt_id=(SELECT"
          " max(attempt_id) FROM attempts)");
  const auto verdict = judged(study, again);
  EXPECT_EQ(verdict.call, Call::no_parity);
  EXPECT_THAT(verdict.reason, HasSubstr("loss differs at step 2"));
  EXPECT_THAT(verdict.reason, HasSubstr("1 ulp"));
}

TEST(Replay, WhatTheOtherTiersNeedIsNotThere) {
  ReplayStudy study;
  study.run();
  const int64_t again = study.replay();
  EXPECT_EQ(judged(study, again, Tier::t1).call, Call::not_shown);
  EXPECT_EQ(judged(study, again, Tier::t1).reason, "too_few");      // no perturbed runs
  EXPECT_EQ(judged(study, again, Tier::t2).call, Call::not_shown);  // one seed, no evaluation
}

TEST(Replay, AChangedPluginIsRefusedUntilAccepted) {
  ReplayStudy study;
  study.run();
  study.rebuild_plugin();
  const Replay plan = study.plan();
  EXPECT_EQ(changed_names(plan), "plugin lion ");
  ASSERT_EQ(standing(plan, false).size(), 1u);
  EXPECT_EQ(plan.refusals[0].id, "H08");
  EXPECT_THAT(render(plan.refusals[0]), HasSubstr("plugin 'lion' is not the one that ran"));
  EXPECT_THAT(render(plan.refusals[0]), HasSubstr("--accept-binaries"));
  EXPECT_TRUE(standing(plan, true).empty());
  study.replay();
  // What ran is another cell, of the same configuration, in a study of its own.
  EXPECT_EQ(study.count("SELECT count(*) FROM cells"), 2);
  EXPECT_EQ(study.count("SELECT count(DISTINCT config_id) FROM cells"), 1);
  EXPECT_EQ(study.count("SELECT count(*) FROM studies WHERE name='fake-study-replay'"), 1);
  EXPECT_EQ(study.count("SELECT count(*) FROM runs WHERE purpose='replay' AND state='ok'"), 1);
  EXPECT_EQ(study.count("SELECT count(*) FROM attempt_plugins"), 2);
}

TEST(Replay, APluginThatIsNowhereStaysRefused) {
  ReplayStudy study;
  study.run();
  std::filesystem::remove(study.plugin());
  const Replay plan = study.plan();
  ASSERT_EQ(standing(plan, true).size(), 1u);
  EXPECT_EQ(plan.refusals[0].id, "H09");
  EXPECT_THAT(render(plan.refusals[0]), HasSubstr(study.plugin().string()));
}

TEST(Replay, APluginThatMovedIsFoundByItsHash) {
  ReplayStudy study;
  study.run();
  const auto other = study.folder() / "elsewhere";
  std::filesystem::create_directories(other);
  std::filesystem::rename(study.plugin(), other / "lion.assay.so");
  Installed here = study.installed();
  here.plugin_folders = {other};
  const Replay plan = plan_replay(store::Reader(study.database()), 1, here);
  EXPECT_TRUE(plan.refusals.empty());
  EXPECT_TRUE(plan.same_binaries());
  EXPECT_EQ(plan.new_files.size(), 1u);
}

TEST(Replay, AChangedDataFileIsRefusedWhateverIsAccepted) {
  ReplayStudy study;
  study.run();
  ReplayStudy::write(study.data(), "another text");
  try {
    study.plan();
    FAIL() << "accepted";
  } catch (const DiagnosticError& e) {
    EXPECT_EQ(e.diagnostics()[0].id, "H10");
  }
  std::filesystem::remove(study.data());
  try {
    study.plan();
    FAIL() << "accepted";
  } catch (const DiagnosticError& e) {
    EXPECT_THAT(render(e.diagnostics()[0]), HasSubstr("gone: " + study.data().string()));
  }
}

TEST(Replay, SaysWhatDiffersAndLowersTheTierForOtherKernels) {
  ReplayStudy study;
  study.run();
  Installed here = study.installed();
  here.binaries.worker = "worker-2";
  const Replay rebuilt = plan_replay(store::Reader(study.database()), 1, here);
  EXPECT_EQ(changed_names(rebuilt), "worker ");
  EXPECT_TRUE(rebuilt.refusals.empty());
  EXPECT_FALSE(rebuilt.same_binaries());
  EXPECT_EQ(replay_tier(rebuilt).tier, Tier::t0);
  here.binaries.libtorch = "2.12.0";
  here.env.cpu_model = "Another CPU";
  here.env.facts["kernel"] = "0.0";
  const Replay moved = plan_replay(store::Reader(study.database()), 1, here);
  EXPECT_EQ(changed_names(moved), "worker libtorch cpu_model kernel ");
  EXPECT_EQ(replay_tier(moved).tier, Tier::t1);
  EXPECT_THAT(replay_tier(moved).evidence.front(), HasSubstr("libtorch: 2.11.0 -> 2.12.0"));
}

TEST(Replay, AFailedRunIsRepeatedToo) {
  ReplayStudy study(nlohmann::json{{"behaviour", "throw"}});
  study.run();
  ASSERT_EQ(study.plan().state, "fail");
  study.replay();
  EXPECT_EQ(study.count("SELECT count(*) FROM runs WHERE state='fail'"), 2);
}

TEST(Replay, EachGetsItsOwnSlotAndAStoppedOneIsTakenUp) {
  ReplayStudy study;
  study.run();
  const auto queue = [&] {
    return queue_replay(study.store(), study.plan(), study.installed()).run_id;
  };
  const int64_t first = queue();
  EXPECT_EQ(queue(), first);
  EXPECT_EQ(study.replay(), first);
  EXPECT_NE(queue(), first);
}

TEST(Replay, NeedsARunThatEnded) {
  ReplayStudy study;
  EXPECT_THROW(study.plan(99), Error);
  study.run();
  const int64_t queued = queue_replay(study.store(), study.plan(), study.installed()).run_id;
  EXPECT_THROW(study.plan(queued), Error);
}

TEST(Replay, ARunFromACheckpointIsRefused) {
  ReplayStudy study;
  study.run();
  SQLite::Database(study.database().string(), SQLite::OPEN_READWRITE)
      .exec("UPDATE attempts SET resumed_step=2");
  EXPECT_THROW(study.plan(), Error);
}

}  // namespace
}  // namespace assay::host
