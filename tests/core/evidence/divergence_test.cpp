// The first divergence of two traces: order of computation, layouts, numbers that are none.
#include "core/evidence/divergence.h"

#include <gtest/gtest.h>

#include <limits>

namespace assay::evidence {
namespace {

using Digests = std::vector<TraceDigest>;

Digests two_steps(int64_t ranks) {
  Digests digests;
  for (int64_t step = 0; step < 2; ++step) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      for (const char* point :
           {"weights model.norm", "gradient model.norm", "backward embedding", "backward layers.10",
            "backward layers.9", "backward head", "forward head", "forward layers.9",
            "forward layers.10", "op layers.9 0001 assay::linear", "op layers.9 0000 assay::norm",
            "forward embedding"}) {
        digests.push_back({step, point, rank, 8.0 / static_cast<double>(ranks),
                           16.0 / static_cast<double>(ranks)});
      }
    }
  }
  return digests;
}

TraceDigest& at(Digests& digests, int64_t step, const std::string& point, int64_t rank = 0) {
  for (TraceDigest& d : digests) {
    if (d.step == step && d.point == point && d.rank == rank) return d;
  }
  throw std::out_of_range(point);
}

TEST(Divergence, EqualTracesDoNotPart) {
  const TraceComparison same = compare_traces(two_steps(2), two_steps(2), true, 0);
  EXPECT_FALSE(same.first);
  EXPECT_EQ(same.compared, 2 * 2 * 12);
  EXPECT_EQ(same.largest_gap, 0);
}

/// Whatever else differs later, the earliest computation is named.
TEST(Divergence, FollowsTheOrderOfComputation) {
  const std::vector<std::string> order = {"forward embedding",
                                          "op layers.9 0000 assay::norm",
                                          "op layers.9 0001 assay::linear",
                                          "forward layers.9",
                                          "forward layers.10",
                                          "forward head",
                                          "backward head",
                                          "backward layers.10",
                                          "backward layers.9",
                                          "backward embedding",
                                          "gradient model.norm",
                                          "weights model.norm"};
  Digests changed = two_steps(1);
  for (size_t i = order.size(); i-- > 0;) {
    at(changed, 1, order[i]).sum += 1;
    const TraceComparison result = compare_traces(two_steps(1), changed, true, 0);
    ASSERT_TRUE(result.first);
    EXPECT_EQ(result.first->point, order[i]);
    EXPECT_EQ(result.first->step, 1);
    EXPECT_EQ(result.compared, 12 + static_cast<int64_t>(i) + 1);
  }
}

TEST(Divergence, NamesTheRankOfEqualLayouts) {
  Digests changed = two_steps(4);
  at(changed, 0, "forward layers.9", 2).squares *= 1 + 1e-12;
  const TraceComparison result = compare_traces(two_steps(4), changed, true, 0);
  ASSERT_TRUE(result.first);
  EXPECT_EQ(result.first->rank, 2);
  EXPECT_NEAR(result.first->gap, 1e-12, 1e-15);
}

TEST(Divergence, SumsOverTheRanksOfOtherLayoutsAndLeavesOpsOut) {
  const TraceComparison result = compare_traces(two_steps(1), two_steps(4), false, 1e-12);
  EXPECT_FALSE(result.first);
  EXPECT_EQ(result.compared, 2 * 10);
  Digests changed = two_steps(4);
  at(changed, 1, "backward layers.10", 3).sum += 1e-3;
  const TraceComparison parted = compare_traces(two_steps(1), changed, false, 1e-6);
  ASSERT_TRUE(parted.first);
  EXPECT_EQ(parted.first->point, "backward layers.10");
  EXPECT_EQ(parted.first->rank, -1);
  EXPECT_NEAR(parted.first->gap, 1e-3 / 4, 1e-9);  // over the root of the squares
}

TEST(Divergence, ANumberThatIsNoneOnOneSidePartsThem) {
  Digests changed = two_steps(1);
  at(changed, 0, "forward head").sum = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(compare_traces(two_steps(1), changed, true, 1).first);
  EXPECT_FALSE(compare_traces(changed, changed, true, 1).first);
}

TEST(Divergence, TellsPointsOfOneSideOnly) {
  Digests more = two_steps(1);
  more.push_back({0, "forward layers.11", 0, 1, 1});
  const TraceComparison result = compare_traces(two_steps(1), more, true, 0);
  EXPECT_EQ(result.one_sided, std::vector<std::string>{"forward layers.11"});
  EXPECT_FALSE(result.first);
}

}  // namespace
}  // namespace assay::evidence
