// Alignment of loss curves and tokens to a target, on lines whose answers are plain.
#include "core/evidence/curves.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::evidence {
namespace {

constexpr double kRounding = 1e-9;

/// loss = 5 - slope * step; `tokens` and `seconds` per step.
Curve line(int steps, int64_t tokens, double seconds, double slope = 0.1) {
  Curve curve;
  for (int i = 1; i <= steps; ++i) {
    curve.push_back({.tokens_total = tokens * i, .elapsed_s = seconds * i, .loss = 5 - slope * i});
  }
  return curve;
}

TEST(Curves, EqualTokensEndWhereTheShorterOneEnds) {
  const auto aligned = at_equal_tokens(line(10, 100, 1), line(30, 50, 1, 0.05));
  ASSERT_TRUE(aligned);
  EXPECT_EQ(aligned->at, 1000);
  EXPECT_NEAR(aligned->base, 4, 1e-12);
  EXPECT_NEAR(aligned->candidate, 4, 1e-12);
}

TEST(Curves, EqualTimeInterpolates) {
  const auto aligned = at_equal_time(line(10, 100, 1), line(10, 100, 0.75));
  ASSERT_TRUE(aligned);
  EXPECT_EQ(aligned->at, 7.5);
  EXPECT_NEAR(aligned->base, 4.25, 1e-12);
  EXPECT_NEAR(aligned->candidate, 4, 1e-12);
}

TEST(Curves, NothingOutsideOfACurve) {
  const Curve curve = line(10, 100, 1);
  EXPECT_FALSE(loss_at_tokens(curve, 50));
  EXPECT_FALSE(loss_at_tokens(curve, 1001));
  EXPECT_EQ(loss_at_tokens(curve, 100), 4.9);
  EXPECT_FALSE(loss_at_time({}, 1));
  EXPECT_FALSE(at_equal_tokens({}, curve));
}

TEST(Curves, TokensToTarget) {
  const Curve curve = line(20, 100, 1);
  EXPECT_EQ(tokens_to_target(curve, 4.0 + kRounding, 1), 1000);
  EXPECT_EQ(tokens_to_target(curve, 4.1 + kRounding, 3), 1000);  // the mean of steps 8, 9, 10
  EXPECT_FALSE(tokens_to_target(curve, 2.9, 1));
  EXPECT_FALSE(tokens_to_target(curve, 4.9, 30)) << "the window is longer than the run";
}

TEST(Curves, AMissIsInfinity) {
  const std::vector<Curve> base = {line(20, 100, 1), line(20, 100, 1), line(2, 100, 1)};
  const std::vector<Curve> fast = {line(20, 100, 1, 0.2)};
  const std::vector<Curve> never = {line(2, 100, 1)};
  EXPECT_EQ(tokens_to_target_ratio(base, fast, 4 + kRounding, 1), 0.5);
  EXPECT_TRUE(std::isinf(*tokens_to_target_ratio(base, never, 4, 1)));
  EXPECT_FALSE(tokens_to_target_ratio(never, base, 4, 1));
}

}  // namespace
}  // namespace assay::evidence
