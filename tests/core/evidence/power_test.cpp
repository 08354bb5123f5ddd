// Detectable effects and counts of pairs and seeds against the stated figures.
#include "core/evidence/power.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/evidence/vectors.h"

namespace assay::evidence {
namespace {

TEST(Power, DetectableEffectsOfTheVectors) {
  const double s2 = robust_sd(vectors()[1].d), s5 = robust_sd(vectors()[4].d);
  EXPECT_NEAR(s2, .00126021, 5e-9);
  EXPECT_NEAR(s5, .0133434, 5e-8);
  EXPECT_NEAR(detectable(s2, 10, .005, .01).test, .00164715, 5e-9);
  EXPECT_NEAR(detectable(s2, 10, .005, .01).rule, .0103024, 5e-8);
  EXPECT_NEAR(detectable(s5, 10, .005, .01).test, .0174404, 5e-8);
  EXPECT_NEAR(detectable(s5, 10, .005, .01).rule, .0174404, 5e-8);
}

TEST(Power, DetectableEffectsByScatterAndCount) {
  struct Row {
    double s;
    double percent[3];  // n = 8, 10, 20
  };
  for (const Row& row :
       {Row{.01, {1.55, 1.31, .83}}, {.002, {.31, .26, .17}}, {.03, {4.66, 3.92, 2.50}}}) {
    int i = 0;
    for (const int64_t n : {8, 10, 20}) {
      EXPECT_NEAR(100 * detectable(row.s, n, .005, .01).test, row.percent[i++], .0051) << row.s;
    }
  }
}

TEST(Power, WildPairsDoNotMoveTheRobustScatter) {
  EXPECT_NEAR(robust_sd(vectors()[3].d), .00185, 5e-5);
  EXPECT_NEAR(sample_sd(vectors()[3].d), .0461, 5e-5);
  EXPECT_EQ(sample_sd(std::vector{1.0}), 0);
}

TEST(Power, SeedsForAParity) {
  const double margin = .00149625;
  const auto needed = [&](double r) {
    return seeds_needed(.0019 * std::sqrt(2 * (1 - r)), margin);
  };
  EXPECT_EQ(needed(0), 30);
  EXPECT_EQ(needed(.5), 16);
  EXPECT_EQ(needed(.9), 5);
  EXPECT_FALSE(seeds_needed(.0019, 0));
}

TEST(Power, DifferencesThatSeedsFind) {
  EXPECT_NEAR(detectable_by_seeds(.0019, 3), .005767, 5e-7);
  EXPECT_NEAR(detectable_by_seeds(.0019, 5), .003839, 5e-7);
  EXPECT_NEAR(detectable_by_seeds(.0019, 10), .002518, 5e-7);
  EXPECT_NEAR(detectable_by_seeds(.0019, 20), .001728, 5e-7);
}

TEST(Power, PairsNeeded) {
  const PairTarget target;
  const auto large = pairs_needed(.03, .02, target);
  ASSERT_TRUE(large);
  EXPECT_LE(detectable(.02, *large, target.alpha, target.min_effect).rule, .03);
  EXPECT_GT(detectable(.02, *large - 2, target.alpha, target.min_effect).rule, .03);
  EXPECT_LT(*pairs_needed(.03, .01, target), *large);
  ASSERT_TRUE(pairs_needed(0, .01, target));
  EXPECT_FALSE(pairs_needed(std::log1p(.01), .02, target)) << "an effect at the limit itself";
  EXPECT_FALSE(pairs_needed(.0099, .05, target)) << "too close to the margin for 1,000 pairs";
}

}  // namespace
}  // namespace assay::evidence
