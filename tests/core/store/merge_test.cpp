// Merging another database: by content ids, once, never over a result that is there.
#include "core/store/merge.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "core/store/check.h"
#include "core/store/comparisons.h"
#include "core/store/reader.h"
#include "tests/core/store/sample_study.h"

namespace assay::store {
namespace {

class Merge : public testing::Test {
 protected:
  Merge() {
    SampleStore other(folder_ / "other.db");
    const int64_t plugin =
        other.store.add_plugin({"lion", "optim", "1", 1, "/p/lion.assay.so", id64('f'), "Release"});
    for (int i = 0; i < 2; ++i) {
      const Claim claim = other.claim_and_import();
      const AttemptPlugin used{.plugin_id = plugin, .role = "optim/lion"};
      other.store.add_attempt_plugins(claim.attempt_id, {&used, 1});
      other.store.finish_attempt(claim.attempt_id,
                                 {.state = "ok", .log_path = "/x/runs/a/rank0.log"});
    }
    other.claim();  // still running when it is merged
  }
  MergeResult merge_into(const std::string& name) {
    Store into(folder_ / name);
    return merge(into, folder_ / "other.db");
  }
  int64_t count(const std::string& name, const std::string& what) {
    return *integer(Reader(folder_ / name).query("SELECT count(*) FROM " + what).rows[0][0]);
  }

  TempFolder folder_;
};

TEST_F(Merge, FillsAnEmptyDatabase) {
  const MergeResult result = merge_into("new.db");
  EXPECT_EQ(result.studies, 1);
  EXPECT_EQ(result.cells, 3);
  EXPECT_EQ(result.runs, 2);
  EXPECT_EQ(result.steps, 82);
  EXPECT_EQ(count("new.db", "runs WHERE state='ok'"), 2);
  EXPECT_EQ(count("new.db", "runs WHERE state='queued'"), 4);  // the running one waits here
  EXPECT_EQ(count("new.db", "attempt_plugins"), 2);
  EXPECT_EQ(count("new.db", "cell_axis"), 6);
  EXPECT_EQ(count("new.db", "plan_skips"), 1);
  EXPECT_EQ(count("new.db", "metrics WHERE name='fact.threads'"), 2);
  EXPECT_TRUE(find_damage(folder_ / "new.db").empty());
}

TEST_F(Merge, TwiceChangesNothing) {
  merge_into("new.db");
  const MergeResult again = merge_into("new.db");
  EXPECT_EQ(again.runs, 0);
  EXPECT_EQ(again.runs_kept, 2);
  EXPECT_EQ(again.steps, 0);
  EXPECT_EQ(count("new.db", "attempts"), 2);
  EXPECT_EQ(count("new.db", "supervisors"), 1);
}

TEST_F(Merge, IdsThatAreTakenAreMapped) {
  {
    Study mine = sample_study("mine");
    mine.cells = {sample_cell('9', 0, "bf16")};
    SampleStore here(folder_ / "here.db");
    const int64_t id = here.store.add_study(mine);
    here.store.ensure_runs(id, kMachine);
    here.store.finish_attempt(here.claim_and_import().attempt_id,
                              {.state = "oom", .reason = "mine"});
  }
  const MergeResult result = merge_into("here.db");
  EXPECT_EQ(result.runs, 1);  // slot 0 of the first cell has a result here: it is kept
  EXPECT_EQ(result.runs_kept, 1);
  EXPECT_EQ(count("here.db", "v_run WHERE state='oom' AND reason='mine'"), 1);
  EXPECT_EQ(count("here.db", "v_step WHERE cell_id='" + id64('b') + "'"), 41);
  EXPECT_TRUE(find_damage(folder_ / "here.db").empty());
}

/// Databases whose study compares float8 against bf16 by pairs.
class MergePairs : public testing::Test {
 protected:
  struct Lab : SampleStore {
    Lab(const std::filesystem::path& file, int64_t others) : SampleStore(file) {
      for (int64_t i = 0; i < others; ++i) put_comparison(store, row(id64('a'), id64('c')));
      comparison = put_comparison(store, row(id64('a'), id64('b')));
    }
    ComparisonRow row(const std::string& base, const std::string& candidate) const {
      return {.study_id = study_id,
              .label = "float8",
              .base_cell = base,
              .cand_cell = candidate,
              .design = {{"pairs", 20}},
              .loss_tier = "T2"};
    }
    void plan(int64_t pairs, const std::string& machine = kMachine) {
      for (int64_t i = 0; i < pairs; ++i) {
        const PlannedPair pair{
            .idx = i,
            .run_a = store.ensure_run(id64('a'), machine, "pair", comparison, 2 * i),
            .run_b = store.ensure_run(id64('b'), machine, "pair", comparison, 2 * i + 1)};
        plan_pairs(store, comparison, "p10", {&pair, 1});
        runs.push_back({pair.run_a, pair.run_b});
      }
    }
    void end(int64_t run_id, const std::string& machine = kMachine) {
      const Claim claimed = store
                                .claim({.study_id = study_id,
                                        .machine_id = machine,
                                        .supervisor_id = supervisor_id,
                                        .env_id = id64('e'),
                                        .run_id = run_id})
                                .value();
      store.import_rows(claimed.attempt_id, 0, "spool", spool_rows(claimed.attempt_id), 1000);
      store.finish_attempt(claimed.attempt_id, {.state = "ok"});
    }
    void end_pair(size_t i, double value, const std::string& machine = kMachine) {
      end(runs.at(i).first, machine);
      end(runs.at(i).second, machine);
      const PairResult result{
          .idx = static_cast<int64_t>(i), .value_a = value, .value_b = 2 * value, .d = 0.69};
      put_pair_results(store, comparison, {&result, 1});
    }
    void judge(const std::string& reason) {
      const VerdictRow verdict{.metric = "step_time", .verdict = "SLOWER", .reason = reason};
      const LintRow finding{.rule = "L05", .value_a = "60", .value_b = "66"};
      put_verdicts(store, comparison, {&verdict, 1}, {&finding, 1});
    }
    int64_t comparison = 0;
    std::vector<std::pair<int64_t, int64_t>> runs{};
  };

  MergePairs() {
    Lab other(folder_ / "other.db", 1);  // its comparison has the number 2
    other.plan(3);
    other.end_pair(0, 0.1);
    other.end_pair(1, 0.2);
    other.judge("theirs");
    put_baseline(other.store, {.machine_id = kMachine,
                               .gate = "gate",
                               .config_id = id64('a'),
                               .metric = "wire_bytes",
                               .value = 64,
                               .run_id = other.runs[0].first});
    accept(
        other.store,
        {.machine_id = kMachine,
         .gate = "gate",
         .config_id = id64('b'),
         .metric = "wire_bytes",
         .new_value = 65,
         .commit_sha = "c0ffee",
         .author = "a",
         .reason = "r"},
        {.machine_id = kMachine, .gate = "gate", .config_id = id64('b'), .metric = "wire_bytes"});
  }

  MergeResult merge_into(Store& into) { return merge(into, folder_ / "other.db"); }
  static int64_t count(const Store& store, const std::string& what) {
    return *integer(store.query("SELECT count(*) FROM " + what).rows[0][0]);
  }
  static std::string verdict_reason(const Store& store) {
    const Table rows =
        store.query("SELECT reason FROM v_verdict WHERE cand_cell='" + id64('b') + "'");
    return rows.rows.size() == 1 ? text(rows.at(0, "reason")).value() : "not one verdict";
  }
  /// Pairs whose runs are of their comparison, cells and machine.
  static int64_t sound_pairs(const Store& store) {
    return count(store,
                 "pairs p JOIN comparisons c USING(comparison_id) JOIN runs a ON a.run_id=p.run_a"
                 " JOIN runs b ON b.run_id=p.run_b WHERE a.cell_id=c.base_cell AND"
                 " b.cell_id=c.cand_cell AND a.block=p.comparison_id AND b.block=p.comparison_id"
                 " AND a.slot=2*p.idx AND b.slot=2*p.idx+1 AND a.machine_id=b.machine_id");
  }

  TempFolder folder_;
};

TEST_F(MergePairs, AnEmptyDatabaseTakesThemWithTheirNumbers) {
  Store into(folder_ / "new.db");
  const MergeResult result = merge_into(into);
  EXPECT_EQ(result.comparisons, 2);
  EXPECT_EQ(result.pairs, 3);
  EXPECT_EQ(result.runs, 4);
  EXPECT_EQ(sound_pairs(into), 3);
  EXPECT_EQ(count(into, "v_pair WHERE comparison_id=2 AND value_b=2*value_a AND d=0.69"), 2);
  EXPECT_EQ(count(into, "runs WHERE purpose='pair' AND state='queued'"), 2);  // the third pair
  EXPECT_EQ(verdict_reason(into), "theirs");
  EXPECT_EQ(count(into, "lint WHERE rule='L05' AND comparison_id=2"), 1);
  EXPECT_EQ(count(into, "baselines JOIN runs USING(run_id) WHERE value=64 AND purpose='pair'"), 1);
  EXPECT_EQ(count(into, "acceptances WHERE commit_sha='c0ffee'"), 1);
  EXPECT_TRUE(find_damage(folder_ / "new.db").empty());
}

TEST_F(MergePairs, TwiceChangesNothing) {
  Store into(folder_ / "new.db");
  merge_into(into);
  const MergeResult again = merge_into(into);
  EXPECT_EQ(again.pairs, 0);
  EXPECT_EQ(again.runs, 0);
  EXPECT_EQ(again.runs_kept, 4);
  for (const auto& [table, rows] : {std::pair("comparisons", 2),
                                    {"pairs", 3},
                                    {"verdicts", 1},
                                    {"lint", 1},
                                    {"acceptances", 1},
                                    {"baselines", 2}}) {
    EXPECT_EQ(count(into, table), rows) << table;
  }
}

TEST_F(MergePairs, NumbersThatAreTakenAreMapped) {
  Lab here(folder_ / "here.db", 0);  // its comparison has the number 1
  here.plan(1);                      // waits: filled by the pair of the other file
  const MergeResult result = merge_into(here.store);
  EXPECT_EQ(result.pairs, 2);
  EXPECT_EQ(result.runs, 4);
  EXPECT_EQ(count(here.store, "pairs WHERE comparison_id=1"), 3);
  EXPECT_EQ(sound_pairs(here.store), 3);
  EXPECT_EQ(count(here.store, "pairs WHERE comparison_id=1 AND idx=0 AND value_a=0.1"), 1);
  EXPECT_EQ(verdict_reason(here.store), "theirs");
  EXPECT_TRUE(find_damage(folder_ / "here.db").empty());
}

TEST_F(MergePairs, WhatEndedHereStays) {
  Lab here(folder_ / "here.db", 0);
  here.plan(2);
  here.end_pair(0, 7);
  here.end(here.runs[1].first);  // its partner waits: not to be filled from elsewhere
  here.judge("ours");
  const MergeResult result = merge_into(here.store);
  EXPECT_EQ(result.runs, 0);
  EXPECT_EQ(result.pairs, 1);
  EXPECT_EQ(count(here.store, "pairs WHERE idx=0 AND value_a=7"), 1);
  EXPECT_EQ(count(here.store, "pairs WHERE idx=1 AND value_a IS NULL"), 1);
  EXPECT_EQ(count(here.store, "runs WHERE purpose='pair' AND state='ok'"), 3);
  EXPECT_EQ(verdict_reason(here.store), "ours");
  EXPECT_EQ(count(here.store, "lint"), 1);
}

TEST_F(MergePairs, PairsOfAnotherMachineStayOut) {
  Lab here(folder_ / "here.db", 0);
  here.store.add_env({.env_id = id64('f'), .machine_id = "elsewhere", .host = "bench2"});
  here.plan(2, "elsewhere");
  const MergeResult result = merge_into(here.store);
  EXPECT_EQ(result.pairs, 0);
  EXPECT_EQ(result.runs, 0);
  EXPECT_EQ(count(here.store, "runs WHERE purpose='pair' AND machine_id='" + kMachine + "'"), 0);
  EXPECT_EQ(sound_pairs(here.store), 2);
}

TEST_F(MergePairs, RefusedRunsAreNotCalledKept) {
  Lab here(folder_ / "here.db", 0);
  here.store.add_env({.env_id = id64('f'), .machine_id = "elsewhere", .host = "bench2"});
  here.plan(2, "elsewhere");
  const MergeResult result = merge_into(here.store);
  EXPECT_EQ(result.runs_kept, 0);
  EXPECT_EQ(result.runs_left_out, 4);
}

TEST_F(MergePairs, AHalfPairWaitsForItsOtherHalf) {
  Lab other(folder_ / "other.db", 1);
  other.plan(3);
  other.end(other.runs[2].first);
  Store into(folder_ / "new.db");
  EXPECT_EQ(merge_into(into).runs, 4);
  EXPECT_EQ(count(into, "runs WHERE purpose='pair' AND state='queued'"), 2);
  other.end(other.runs[2].second);
  const PairResult result{.idx = 2, .value_a = 0.3, .value_b = 0.6, .d = 0.69};
  put_pair_results(other.store, other.comparison, {&result, 1});
  EXPECT_EQ(merge_into(into).runs, 2);
  EXPECT_EQ(count(into, "pairs WHERE value_a IS NOT NULL"), 3);
}

TEST_F(MergePairs, VerdictsFollowTheirPairs) {
  Store into(folder_ / "new.db");
  merge_into(into);
  Lab other(folder_ / "other.db", 1);
  other.plan(3);
  other.end_pair(2, 0.3);
  other.judge("of three pairs");
  merge_into(into);
  EXPECT_EQ(verdict_reason(into), "of three pairs");
}

TEST_F(MergePairs, ControlsThatTwoComparisonsShare) {
  const auto controls = [](Lab& lab, int64_t comparison) {
    const PlannedPair pair{
        .stage = 0,
        .idx = 0,
        .run_a = lab.store.ensure_run(id64('a'), kMachine, "control", lab.comparison, 0),
        .run_b = lab.store.ensure_run(id64('a'), kMachine, "control", lab.comparison, 1)};
    plan_pairs(lab.store, comparison, "p10", {&pair, 1});
    return pair;
  };
  {
    Lab other(folder_ / "other.db", 1);
    const PlannedPair pair = controls(other, other.comparison);
    other.end(pair.run_a);
    other.end(pair.run_b);
    const PairResult result{.stage = 0, .idx = 0, .value_a = 1, .value_b = 1, .d = 0};
    put_pair_results(other.store, other.comparison, {&result, 1});
  }
  Lab here(folder_ / "here.db", 0);
  controls(here, here.comparison);
  const int64_t second = put_comparison(here.store, here.row(id64('a'), id64('c')));
  controls(here, second);  // the other file's study never had them
  merge_into(here.store);
  EXPECT_EQ(count(here.store, "pairs WHERE stage=0 AND value_a=1"), 1);
  EXPECT_EQ(count(here.store, "pairs WHERE stage=0 AND value_a IS NULL"), 1);
  EXPECT_TRUE(find_damage(folder_ / "here.db").empty());
}

TEST_F(MergePairs, ComparisonsOfAnOlderPlan) {
  {
    Lab other(folder_ / "other.db", 1);
    Study again = sample_study();
    again.cells = {sample_cell('8', 0, "bf16"), sample_cell('9', 1, "float8")};
    other.store.add_study(again);  // other binaries: cells with other ids
  }
  Store into(folder_ / "new.db");
  const MergeResult result = merge_into(into);
  EXPECT_EQ(result.comparisons, 2);
  EXPECT_EQ(result.runs, 4);
  EXPECT_EQ(verdict_reason(into), "theirs");
  EXPECT_TRUE(find_damage(folder_ / "new.db").empty());
}

TEST_F(Merge, OneStudyAlone) {
  Store into(folder_ / "new.db");
  EXPECT_THROW(merge(into, folder_ / "other.db", "nosuch"), Error);
  EXPECT_EQ(merge(into, folder_ / "other.db", "layouts").runs, 2);
  EXPECT_THROW(merge(into, folder_ / "new.db"), Error);  // itself
}

TEST_F(Merge, LogsOfAnExportPointIntoItsFolder) {
  merge_into("new.db");
  Store store(folder_ / "new.db");
  relocate_logs(store, "runs");
  const Table row = store.query("SELECT attempt_id, log_path FROM attempts ORDER BY attempt_id");
  EXPECT_EQ(text(row.at(0, "log_path")),
            "runs/" + std::to_string(*integer(row.at(0, "attempt_id"))) + "/rank0.log");
}

}  // namespace
}  // namespace assay::store
