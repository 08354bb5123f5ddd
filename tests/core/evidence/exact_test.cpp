// Figures that must not scatter, and when they do.
#include "core/evidence/exact.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::evidence {
namespace {

const Proxy kWire{.metric = "wire_bytes"};
const Proxy kPeak{.metric = "peak_allocated_bytes", .tolerance = 0.005};

Verdict judge(const Proxy& proxy, std::vector<double> base, std::vector<double> candidate) {
  return judge_exact(proxy, base, candidate);
}

TEST(Exact, AnyIncreaseOfACountIsWorse) {
  EXPECT_EQ(judge(kWire, {1000}, {1001}).call, Call::worse);
  EXPECT_EQ(judge(kWire, {1000}, {999}).call, Call::better);
  EXPECT_EQ(judge(kWire, {1000, 1000}, {1000}).call, Call::same);
}

TEST(Exact, PeaksMayDifferByHalfAPercent) {
  EXPECT_EQ(judge(kPeak, {1000}, {1005}).call, Call::same);
  EXPECT_EQ(judge(kPeak, {1000}, {1006}).call, Call::worse);
  EXPECT_NEAR(*judge(kPeak, {1000}, {1100}).change(), 0.1, 1e-12);
}

TEST(Exact, RangesThatMeetSettleNothing) {
  const Verdict v = judge(kPeak, {1000, 1100}, {1050, 1200});
  EXPECT_EQ(v.call, Call::unresolved);
  EXPECT_EQ(v.reason, "varies");
  EXPECT_EQ(judge(kPeak, {1000, 1100}, {1200, 1300}).call, Call::worse);
}

TEST(Exact, NothingMeasuredIsNoVerdict) {
  const Verdict v = judge(kWire, {}, {1000});
  EXPECT_EQ(v.call, Call::unresolved);
  EXPECT_EQ(v.reason, "not_measured");
  EXPECT_FALSE(v.estimate);
}

TEST(Exact, ZeroIsAValue) {
  EXPECT_EQ(judge(kWire, {0}, {0}).call, Call::same);
  EXPECT_EQ(judge(kWire, {0}, {8}).call, Call::worse);
}

TEST(Exact, FactsCarryTheirPrefix) {
  EXPECT_EQ(stored_name("flops_per_token"), "fact.flops_per_token.tt");
  EXPECT_EQ(stored_name("operations"), "fact.operations");
  EXPECT_EQ(stored_name("wire_bytes"), "wire_bytes");
}

}  // namespace
}  // namespace assay::evidence
