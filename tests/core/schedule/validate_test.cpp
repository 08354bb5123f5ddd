// What a schedule can have wrong, one thing at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/schedule/validate.h"
#include "tests/core/schedule/shapes.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Rows = std::vector<std::string>;

/// "rank:index text" of each problem.
std::vector<std::string> problems(const Rows& rows, int64_t microbatches = 0) {
  std::vector<ActionList> lists;
  for (const std::string& row : rows) lists.push_back(row_of(row));
  std::vector<std::string> found;
  for (const ScheduleProblem& p : validate(lists, microbatches).problems) {
    found.push_back(std::to_string(p.rank) + ":" + std::to_string(p.index) + " " + p.text);
    for (const std::string& detail : p.details) found.push_back(detail);
  }
  return found;
}

TEST(Validation, PassesEveryGeneratedSchedule) {
  for (const auto& [schedule, shape] : all_shapes(6, 14)) {
    const ScheduleCheck check = validate(generate(schedule.name, shape));
    ASSERT_TRUE(check.problems.empty())
        << label(schedule, shape) << ": " << check.problems.front().text;
    EXPECT_EQ(check.microbatches, shape.microbatches);
    EXPECT_EQ(check.rank_of_stage, ranks_of_stages(schedule.placement, shape));
    EXPECT_FALSE(check.lowered);
  }
}

TEST(Validation, PassesShortZbvWhenAllowed) {
  for (int64_t p = 1; p <= 5; ++p) {
    for (int64_t m = 1; m < 2 * p; ++m) {
      EXPECT_THAT(validate(generate("zbv", {p, 2, m}, {.allow_short = true})).problems, IsEmpty());
    }
  }
}

TEST(Validation, NamesWhatIsMissingOrTwice) {
  EXPECT_THAT(problems({"0F0,0B0,0F1,0B1", "1F0,1B0,1B1"}),
              ElementsAre("1:3 stage 1 misses 1F1; there are 2 microbatches"));
  EXPECT_THAT(problems({"0F0,0F1,0B1", "1F0,1B0,1F1,1B1"}),
              ElementsAre("0:3 stage 0 misses 0B0 (or I and W); there are 2 microbatches"));
  EXPECT_THAT(problems({"0F0,0B0,0F0,0F1,0B1"}), ElementsAre("0:2 0F0 is there twice"));
  EXPECT_THAT(problems({"0F0,0I0,0F1,0B1"}), ElementsAre("0:1 0I0 has no W"));
  EXPECT_THAT(problems({"0F0,0B0,0W0"}), ElementsAre("0:1 0B0 has W as well; B is I and W in one",
                                                     "0:2 0W0 comes before its I"));
  EXPECT_THAT(problems({"0F0,0I0,0B0,0W0"}),
              ElementsAre("0:2 0B0 has I as well; B is I and W in one",
                          "0:2 0B0 has W as well; B is I and W in one"));
}

TEST(Validation, HoldsTheScheduleAgainstTheMicrobatchesOfTheRun) {
  EXPECT_THAT(
      problems({"0F0,0B0"}, 11),
      ElementsAre("0:2 stage 0 misses 0F1, 0F2, 0F3, 0F4, 0F5, 0F6, 0F7, 0F8 and 2 more; "
                  "there are 11 microbatches",
                  "0:2 stage 0 misses 0B1, 0B2, 0B3, 0B4, 0B5, 0B6, 0B7, 0B8 and 2 more (or "
                  "I and W); there are 11 microbatches"));
  EXPECT_THAT(problems({"0F0,0B0,0F1,0B1"}, 1),
              ElementsAre("0:2 0F1 is beyond the last microbatch, 0",
                          "0:3 0B1 is beyond the last microbatch, 0"));
}

// PyTorch 2.11 exports 1F1B with the last rank's forwards numbered 1..m.
TEST(Validation, DoesNotRepairForwardsNumberedFromOne) {
  EXPECT_THAT(problems({"0F0,0F1,0B0,0B1", "1F1,1B0,1F2,1B1"}),
              ElementsAre("1:2 1F2 is beyond the last microbatch, 1",
                          "1:4 stage 1 misses 1F0; there are 2 microbatches"));
}

TEST(Validation, NamesActionsOutOfOrder) {
  EXPECT_THAT(problems({"0F0,0F1,0B0,0B1", "1B0,1F0,1F1,1B1"}),
              ElementsAre("1:0 1B0 comes before its F"));
  EXPECT_THAT(problems({"0F0,0W0,0I0"}), ElementsAre("0:1 0W0 comes before its I"));
}

TEST(Validation, NamesStagesThatAreMisplaced) {
  EXPECT_THAT(problems({"0F0,0B0", "1F0,1B0,0F1,0B1"}),
              ElementsAre("1:2 stage 0 is on rank 0 already; a stage is on one rank",
                          "1:3 stage 0 is on rank 0 already; a stage is on one rank"));
  EXPECT_THAT(problems({"0F0,0B0", ""}), ElementsAre("1:0 rank 1 has no action"));
  EXPECT_THAT(problems({"0F0,0B0", "2F0,2B0"}),
              ElementsAre("1:2 no rank has stage 1, but there is a stage 2"));
  EXPECT_THAT(problems({"0B0", "1B0"}), ElementsAre("0:0 most stages have no forward"));
}

TEST(Validation, OfADeadLockNamesEveryRanksHead) {
  EXPECT_THAT(problems({"0F0,0B0,0F1,0B1", "1F1,1B1,1F0,1B0", "2F0,2B0,2F1,2B1"}),
              ElementsAre("0:1 dead-lock: no rank can go on",
                          "rank 0 waits at 0B0 (action 2) for 1B0, action 4 of rank 1",
                          "rank 1 waits at 1F1 (action 1) for 0F1, action 3 of rank 0",
                          "rank 2 waits at 2F0 (action 1) for 1F0, action 3 of rank 1"));
  EXPECT_THAT(problems({"0F0,0F1,0B0,0B1", "1F1,1B1,1F0,1B0"}), IsEmpty())
      << "ranks may take microbatches in different orders";
  EXPECT_THAT(problems({"0F0,(0F1;0B1)OVERLAP_F_B,0B0"}),
              ElementsAre("0:1 dead-lock: no rank can go on",
                          "rank 0 waits at (0F1;0B1)OVERLAP_F_B (action 2) for 0F1, action 2 of "
                          "rank 0"));
}

Rows lowered_rows() {
  Rows rows;
  for (const ActionList& list : lower(generate("1f1b", {2, 1, 2}), {0, 1})) {
    rows.push_back(print(list));
  }
  return rows;
}

/// Exchanges the two cells in a row.
std::string swapped(const std::string& row, const std::string& a, const std::string& b) {
  ActionList list = row_of(row);
  const auto first = std::find(list.begin(), list.end(), parse_action(a));
  const auto second = std::find(list.begin(), list.end(), parse_action(b));
  std::iter_swap(first, second);
  return print(list);
}

std::string without(const std::string& row, const std::string& cell) {
  ActionList list = row_of(row);
  std::erase(list, parse_action(cell));
  return print(list);
}

TEST(Lowered, FileIsValidAsItIs) { EXPECT_THAT(problems(lowered_rows()), IsEmpty()); }

TEST(Lowered, FileWithASendAndAReceiveSwappedIsRejected) {
  Rows rows = lowered_rows();
  rows[0] = swapped(rows[0], "0SEND_F1", "0RECV_B0");
  EXPECT_THAT(problems(rows),
              ElementsAre("0:4 dead-lock: no rank can go on",
                          "rank 0 waits at 0RECV_B0 (action 5) for 1SEND_B0, action 6 of rank 1",
                          "rank 1 waits at 1RECV_F1 (action 4) for 0SEND_F1, action 6 of rank 0"));
  rows = lowered_rows();
  rows[0] = swapped(rows[0], "0SEND_F0", "0RECV_B0");
  EXPECT_THAT(
      problems(rows),
      ElementsAre("1:1 1RECV_F0 is the no. 1 receive from rank 0, whose no. 1 send to it is "
                  "0SEND_F1"));
}

TEST(Lowered, FileWithReceivesInAnotherOrderIsRejected) {
  Rows rows = lowered_rows();
  rows[0] = swapped(rows[0], "0RECV_B0", "0RECV_B1");
  EXPECT_THAT(
      problems(rows),
      ElementsAre("0:5 0RECV_B1 is the no. 1 receive from rank 1, whose no. 1 send to it is "
                  "1SEND_B0"));
}

TEST(Lowered, FileWithATransferLeftOutIsRejected) {
  Rows rows = lowered_rows();
  rows[1] = without(rows[1], "1RECV_F1");
  EXPECT_THAT(problems(rows), ElementsAre("0:4 0SEND_F1 has no 1RECV_F1 on rank 1"));
  rows = lowered_rows();
  rows[0] = without(rows[0], "0SEND_F1");
  EXPECT_THAT(problems(rows), ElementsAre("0:3 0F1 is not sent to rank 1: 0SEND_F1 is missing",
                                          "1:3 1RECV_F1 has no send on rank 0"));
}

TEST(Lowered, FileWithTransfersThatLeadNowhereIsRejected) {
  Rows rows = lowered_rows();
  rows[1] += ",1SEND_F0,0RECV_F0";
  EXPECT_THAT(problems(rows), testing::Contains("1:12 stage 0 is on rank 0 already; a stage is on "
                                                "one rank"));
  rows = lowered_rows();
  rows[1] += ",1SEND_F0";
  EXPECT_THAT(problems(rows), ElementsAre("1:11 1SEND_F0 has no other rank at its other end, stage "
                                          "2"));
}

TEST(Lowered, ReductionsComeOnceAfterTheLastGradient) {
  Rows rows = lowered_rows();
  rows[0] = without(rows[0], "0REDUCE_GRAD");
  EXPECT_THAT(problems(rows), ElementsAre("0:10 stage 0 has no REDUCE_GRAD"));
  rows = lowered_rows();
  rows[0] = swapped(rows[0], "0B1", "0REDUCE_GRAD");
  EXPECT_THAT(problems(rows), ElementsAre("0:8 0REDUCE_GRAD comes before 0B1"));
  rows = lowered_rows();
  rows[0] += ",0REDUCE_GRAD";
  EXPECT_THAT(problems(rows), ElementsAre("0:11 0REDUCE_GRAD is there twice"));
}

TEST(Lowered, ActionsRunWhileTheirStageIsUnsharded) {
  Rows rows = lowered_rows();
  rows[0] = swapped(rows[0], "0UNSHARD", "0F0");
  EXPECT_THAT(problems(rows), ElementsAre("0:0 0F0 runs while its stage is sharded"));
  rows = lowered_rows();
  rows[0] = without(rows[0], "0RESHARD");
  EXPECT_THAT(problems(rows), ElementsAre("0:10 stage 0 is never resharded"));
  rows = lowered_rows();
  rows[0] = "0UNSHARD," + rows[0] + ",0RESHARD";
  EXPECT_THAT(problems(rows), ElementsAre("0:1 0UNSHARD comes while the stage is unsharded",
                                          "0:12 0RESHARD comes while the stage is sharded"));
}

// Whatever is done to a good schedule, validation ends, and what it passes can be lowered.
TEST(Validation, SurvivesRandomEdits) {
  std::mt19937 random(7);
  const auto shapes = all_shapes(3, 6);
  int passed = 0, rejected = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const auto& [schedule, shape] = shapes[random() % shapes.size()];
    std::vector<ActionList> lists = generate(schedule.name, shape);
    ActionList& list = lists[random() % lists.size()];
    const size_t a = random() % list.size(), b = random() % list.size();
    switch (random() % 4) {
      case 0:
        std::swap(list[a], list[b]);
        break;
      case 1:
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(a));
        break;
      case 2:
        list[a] = list[b];
        break;
      default:
        list[a].microbatch += 1;
    }
    const ScheduleCheck check = validate(lists, shape.microbatches);
    (check.problems.empty() ? passed : rejected) += 1;
    if (check.problems.empty()) {
      EXPECT_NO_THROW(lower(lists, check.rank_of_stage));
    }
  }
  EXPECT_GT(passed, 100);
  EXPECT_GT(rejected, 2000);
}

}  // namespace
}  // namespace assay
