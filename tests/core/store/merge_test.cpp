// Merging another database: by content ids, once, never over a result that is there.
#include "core/store/merge.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "core/store/check.h"
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
