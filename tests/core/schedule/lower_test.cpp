// What lowering adds to a compute-only schedule, and that the result still runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/error.h"
#include "assay/pipeline.h"
#include "core/schedule/validate.h"
#include "tests/core/schedule/shapes.h"

namespace assay {
namespace {

std::vector<ActionList> lists_of(const std::vector<std::string>& rows) {
  std::vector<ActionList> lists;
  for (const std::string& row : rows) lists.push_back(row_of(row));
  return lists;
}

TEST(Lowering, OfTwoRanksIsTheOneWrittenByHand) {
  const auto lowered =
      lower(generate("1f1b", {2, 1, 2}), ranks_of_stages(StagePlacement::loop, {2, 1, 2}));
  EXPECT_EQ(print_schedule_csv(lowered),
            "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD\n"
            "1UNSHARD,1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD\n");
}

TEST(Lowering, PrefetchesTheNextStagesAndEvictsTheOthers) {
  const LowerOptions two{.prefetch = 2};
  const auto lowered = lower(lists_of({"0F0,1F0,2F0,2B0,1B0,0B0"}), {0, 0, 0}, two);
  EXPECT_EQ(
      print(lowered[0]),
      "0UNSHARD,1UNSHARD,0F0,0RESHARD,2UNSHARD,1F0,2F0,2B0,2REDUCE_GRAD,2RESHARD,0UNSHARD,1B0,"
      "1REDUCE_GRAD,1RESHARD,0B0,0REDUCE_GRAD,0RESHARD");
}

TEST(Lowering, SendsNothingBetweenStagesOfOneRank) {
  // The point of the V: stages 1 and 2 are both on rank 1.
  const PipelineShape shape{2, 2, 4};
  for (const ActionList& list :
       lower(generate("dualpipev", shape), ranks_of_stages(StagePlacement::v, shape))) {
    for (const Action& action : list) {
      const bool forwards = action.kind == ActionKind::send_forward;
      const bool backwards = action.kind == ActionKind::send_backward;
      EXPECT_FALSE(forwards && action.stage == 1) << print(action);
      EXPECT_FALSE(backwards && action.stage == 2) << print(action);
    }
  }
}

TEST(Lowering, KeepsOverlappedPairsTogether) {
  const PipelineShape shape{3, 2, 7};
  const auto compute = generate("dualpipev", shape);
  const auto lowered = lower(compute, ranks_of_stages(StagePlacement::v, shape));
  for (size_t rank = 0; rank < lowered.size(); ++rank) {
    int pairs = 0, expected = 0;
    for (const Action& action : compute[rank]) expected += action.overlaps_next ? 1 : 0;
    for (size_t i = 0; i < lowered[rank].size(); ++i) {
      if (!lowered[rank][i].overlaps_next) continue;
      ++pairs;
      EXPECT_EQ(lowered[rank][i + 1].kind, ActionKind::backward);
    }
    EXPECT_EQ(pairs, expected);
    EXPECT_GT(pairs, 0);
  }
}

TEST(Lowering, OfEveryScheduleIsValidAndComputesTheSame) {
  for (const auto& [schedule, shape] : all_shapes(5, 10)) {
    const auto compute = generate(schedule.name, shape);
    const auto lowered = lower(compute, ranks_of_stages(schedule.placement, shape));
    const ScheduleCheck check = validate(lowered, shape.microbatches);
    EXPECT_TRUE(check.lowered);
    ASSERT_TRUE(check.problems.empty())
        << label(schedule, shape) << ": " << check.problems.front().text;
    for (size_t rank = 0; rank < compute.size(); ++rank) {
      ActionList kept = lowered[rank];
      std::erase_if(kept, [](const Action& action) { return !is_compute(action.kind); });
      EXPECT_EQ(kept, compute[rank]) << label(schedule, shape);
    }
  }
}

TEST(Lowering, HoldsAtMostThePrefetchedStagesUnsharded) {
  const PipelineShape shape{2, 5, 4};
  const auto ranks = ranks_of_stages(StagePlacement::loop, shape);
  for (const int64_t prefetch : {1, 2, 3}) {
    for (const ActionList& list :
         lower(generate("interleaved_1f1b", shape), ranks, {.prefetch = prefetch})) {
      int64_t active = 0, most = 0;
      for (const Action& action : list) {
        active += action.kind == ActionKind::unshard ? 1 : 0;
        active -= action.kind == ActionKind::reshard ? 1 : 0;
        most = std::max(most, active);
      }
      EXPECT_EQ(most, prefetch);
      EXPECT_EQ(active, 0);
    }
  }
}

TEST(Lowering, WithoutShardedParametersUnshardsNothing) {
  const auto lowered = lower(generate("gpipe", {2, 1, 1}), {0, 1}, {.shard = false});
  EXPECT_EQ(print_schedule_csv(lowered),
            "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD\n");
}

TEST(Lowering, MergesAdjacentInputAndWeightGradientsOfOneMicrobatch) {
  EXPECT_EQ(print(merge_backward(row_of("0F0,0I0,0W0,0F1,1I0,0I1,1W0,0W1"))),
            "0F0,0B0,0F1,1I0,0I1,1W0,0W1");
  const PipelineShape shape{2, 1, 4};
  const auto lowered = lower(generate("interleaved_zb", shape), {0, 1}, {.merge_backward = true});
  EXPECT_TRUE(validate(lowered, shape.microbatches).problems.empty());
  EXPECT_THAT(print(lowered[0]), testing::HasSubstr("0B3,0REDUCE_GRAD"));
}

TEST(Lowering, OfADeadLockNamesEveryRanksNextAction) {
  try {
    lower(lists_of({"0F0,0B0,0F1,0B1", "1F1,1B1,1F0,1B0"}), {0, 1});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "the schedule dead-locks; rank 0 waits at 0B0 (action 2) for 1B0, action 4 of rank "
        "1; rank 1 waits at 1F1 (action 1) for 0F1, action 3 of rank 0");
  }
}

}  // namespace
}  // namespace assay
