// A/A comparisons of one cell: planned one at a time, accumulated, judged in blocks.
#include "core/host/selftest.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "core/evidence/selftest.h"
#include "tests/core/host/harness.h"

namespace assay::host {
namespace {

class SelftestPairs : public testing::Test {
 protected:
  /// A cell for each global batch.
  void plan(const std::vector<int64_t>& batches) {
    std::vector<store::Cell> cells;
    for (const int64_t batch : batches) {
      store::Cell cell = fake_cell(static_cast<int>(cells.size()), {});
      auto config = nlohmann::json::parse(cell.config_json);
      config["train"]["warmup_steps"] = 0;
      config["train"]["global_batch"] = batch;
      cell.config_json = config.dump();
      cells.push_back(cell);
    }
    study_.options().study_id = study_.store().add_study({.name = evidence::kSelftestStudy,
                                                          .yaml_sha256 = std::string(64, '8'),
                                                          .resolved_json = "{}",
                                                          .cells = cells});
    study_.options().keys.timed = true;
  }
  /// Pairs of stage 1 with a cell of that global batch.
  int64_t pairs_with(int64_t batch) {
    return study_.count(
        "SELECT count(*) FROM pairs JOIN comparisons USING(comparison_id) JOIN cells ON"
        " cell_id=cand_cell WHERE stage=1 AND config_json->>'$.train.global_batch'=" +
        std::to_string(batch));
  }
  int64_t schedule() {
    return schedule_selftest(study_.store(), study_.options().study_id,
                             this_env(grid::installed_binaries().libtorch).machine_id);
  }
  int64_t pairs(int stage) {
    return study_.count("SELECT count(*) FROM pairs WHERE stage=" + std::to_string(stage));
  }

  FakeStudy study_{{}};
};

TEST_F(SelftestPairs, EachCallAddsOneComparisonWhenNothingWaits) {
  plan({2});
  EXPECT_EQ(schedule(), 20);
  EXPECT_EQ(pairs(1), 20);
  EXPECT_EQ(pairs(0), 8);
  EXPECT_EQ(schedule(), 0);  // what waits comes first
  EXPECT_EQ(pairs(1), 20);
  EXPECT_EQ(study_.run().exit_code, 0);
  EXPECT_EQ(schedule(), 20);
  EXPECT_EQ(pairs(1), 40);
  EXPECT_EQ(pairs(0), 16);
  EXPECT_EQ(study_.count("SELECT count(*) FROM comparisons"), 1);
}

TEST_F(SelftestPairs, WholeComparisonsAreCountedAndDated) {
  plan({2});
  schedule();
  study_.run();
  const store::Reader reader(study_.database());
  const auto stored = evidence::stored_selftests(reader);
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(stored[0].equal.comparisons, 1);
  EXPECT_EQ(stored[0].equal.called, 0);  // the fake times are equal
  EXPECT_EQ(stored[0].open_pairs, 0);
  const std::string note = evidence::selftest_note(stored, stored[0].machine_id);
  EXPECT_NE(note.find("UTC: 0 of 1 equal comparisons were called different (95 % bound 95.000 %)"),
            std::string::npos)
      << note;
  EXPECT_EQ(evidence::selftest_note(stored, "another machine"), "");
}

TEST_F(SelftestPairs, EveryOtherComparisonIsWithMoreWork) {
  plan({100, 103, 101});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(schedule(), 20);
    EXPECT_EQ(study_.run().exit_code, 0);
  }
  EXPECT_EQ(pairs_with(100), 60);
  EXPECT_EQ(pairs_with(103), 20);
  EXPECT_EQ(pairs_with(101), 20);
  const auto stored = evidence::stored_selftests(store::Reader(study_.database()));
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(stored[0].equal.comparisons, 3);
  ASSERT_EQ(stored[0].injected.size(), 2u);
  EXPECT_DOUBLE_EQ(stored[0].injected[0].work, 0.01);
  EXPECT_EQ(stored[0].injected[1].found.comparisons, 1);
  EXPECT_EQ(stored[0].injected[1].found.called, 0);  // the fake times are equal
}

TEST_F(SelftestPairs, CellsThatDifferInAnythingElseAreRefused) {
  plan({100, 99});
  EXPECT_THROW(schedule(), Error);
}

}  // namespace
}  // namespace assay::host
