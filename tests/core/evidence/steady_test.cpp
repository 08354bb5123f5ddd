// steady_v1 against the design's vector V9 and against starts that must not count as steady.
#include "core/evidence/steady.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/store/quantile.h"
#include "tests/core/store/sample_study.h"

namespace assay::evidence {
namespace {

std::vector<double> steps_of(int64_t n, double (*f)(int64_t)) {
  std::vector<double> x;
  for (int64_t k = 1; k <= n; ++k) x.push_back(f(k));
  return x;
}

TEST(Steady, VectorV9) {
  const auto x = steps_of(40, [](int64_t k) { return store::sample_step_s(k); });
  const Steady steady = find_steady(x, 5).value();
  EXPECT_EQ(steady.outcome, SteadyOutcome::found);
  EXPECT_NEAR(steady.reference_s, 0.100011431, 5e-10);
  EXPECT_EQ(steady.first, 13);
  EXPECT_EQ(steady.last, 40);
  EXPECT_FALSE(steady.drift);
  EXPECT_EQ(steady.method(), "steady_v1");
  const std::vector<double> used(x.begin() + 12, x.end());
  ASSERT_EQ(used.size(), 28u);
  EXPECT_NEAR(*store::quantile(used, 0.1), .099620307, 5e-10);
  EXPECT_NEAR(*store::quantile(used, 0.5), .100151032, 5e-10);
  EXPECT_NEAR(*store::quantile(used, 0.9), .100613196, 5e-10);
}

TEST(Steady, ARampIsNeverSteady) {
  const auto x = steps_of(40, [](int64_t k) { return 0.1 * (1 + .004 * static_cast<double>(k)); });
  const Steady steady = find_steady(x, 5).value();
  EXPECT_EQ(steady.outcome, SteadyOutcome::not_found);
  EXPECT_EQ(steady.first, 21);
  EXPECT_NE(steady.method().find("unsteady"), std::string::npos);
}

TEST(Steady, AStepDownInTheSecondHalfIsNotSteady) {
  const auto x = steps_of(40, [](int64_t k) { return k < 26 ? 0.12 : 0.1; });
  EXPECT_EQ(find_steady(x, 5)->outcome, SteadyOutcome::not_found);
}

TEST(Steady, AConstantRunIsSteadyAtOnce) {
  const Steady steady = find_steady(std::vector<double>(40, 0.1), 5).value();
  EXPECT_EQ(steady.outcome, SteadyOutcome::found);
  EXPECT_EQ(steady.first, 6);
}

TEST(Steady, ShortRunsAreLabelled) {
  const Steady steady = find_steady(std::vector<double>(19, 0.1), 5).value();
  EXPECT_EQ(steady.outcome, SteadyOutcome::too_short);
  EXPECT_EQ(steady.first, 6);
  EXPECT_EQ(steady.method(), "steady_v1 too_short");
  EXPECT_EQ(find_steady(std::vector<double>(20, 0.1), 5)->outcome, SteadyOutcome::found);
  EXPECT_FALSE(find_steady(std::vector<double>(5, 0.1), 5));
}

TEST(Steady, SlowerAtTheEndIsLabelledAsDrift) {
  std::vector<double> x(155, 0.1);
  x.insert(x.end(), 45, 0.103);  // less than half of the last half: ref stays 0.1
  const Steady steady = find_steady(x, 5).value();
  EXPECT_EQ(steady.outcome, SteadyOutcome::found);
  EXPECT_TRUE(steady.drift);
  EXPECT_EQ(steady.method(), "steady_v1 drift");
  EXPECT_FALSE(find_steady(std::vector<double>(200, 0.1), 5)->drift);
}

}  // namespace
}  // namespace assay::evidence
