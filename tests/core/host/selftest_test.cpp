// A/A comparisons of one cell: planned one at a time, accumulated, judged in blocks.
#include "core/host/selftest.h"

#include <gtest/gtest.h>

#include "core/evidence/selftest.h"
#include "tests/core/host/harness.h"

namespace assay::host {
namespace {

class SelftestPairs : public testing::Test {
 protected:
  SelftestPairs() {
    store::Cell cell = fake_cell(0, {});
    auto config = nlohmann::json::parse(cell.config_json);
    config["train"]["warmup_steps"] = 0;
    cell.config_json = config.dump();
    study_.options().study_id = study_.store().add_study({.name = evidence::kSelftestStudy,
                                                          .yaml_sha256 = std::string(64, '8'),
                                                          .resolved_json = "{}",
                                                          .cells = {cell}});
    study_.options().keys.timed = true;
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
  schedule();
  study_.run();
  const store::Reader reader(study_.database());
  const auto stored = evidence::stored_selftests(reader);
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(stored[0].equal.comparisons, 1);
  EXPECT_EQ(stored[0].equal.called, 0);  // the fake times are equal
  EXPECT_EQ(stored[0].open_pairs, 0);
  const std::string note = evidence::selftest_note(reader, stored[0].machine_id);
  EXPECT_NE(note.find("UTC: 0 of 1 equal comparisons were called different (95 % bound 95.000 %)"),
            std::string::npos)
      << note;
  EXPECT_EQ(evidence::selftest_note(reader, "another machine"), "");
}

}  // namespace
}  // namespace assay::host
