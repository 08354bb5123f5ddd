// Parity of losses over seeds: the stated vector, its limits, and what is never called equal.
#include "core/evidence/seeds.h"

#include <gtest/gtest.h>

namespace assay::evidence {
namespace {

/// V11
std::vector<SeedPair> vector11() {
  return {{1, 3.2791, 3.2795},
          {2, 3.2773, 3.2771},
          {3, 3.2783, 3.2790},
          {4, 3.2775, 3.2779},
          {5, 3.2781, 3.2778}};
}

TEST(Seeds, ParityOfTheStatedVector) {
  const Verdict v = judge_parity(vector11(), .0015);
  EXPECT_EQ(v.call, Call::parity);
  EXPECT_NEAR(*v.estimate, .0002, 1e-12);
  EXPECT_NEAR(*v.sd, .000430116, 5e-10);
  EXPECT_NEAR(v.interval->low, -.00021007, 5e-9);
  EXPECT_NEAR(v.interval->high, .00061007, 5e-9);
  EXPECT_NEAR(*v.p_same, .0012499, 5e-8);
  EXPECT_NEAR(*correlation(vector11()), .914568, 5e-7);
  EXPECT_EQ(v.n_used, 5);
}

TEST(Seeds, ANarrowMarginIsNotShown) {
  const Verdict v = judge_parity(vector11(), .0005);
  EXPECT_EQ(v.call, Call::not_shown);
  EXPECT_NEAR(*v.p_same, .096930, 5e-7);
  ASSERT_TRUE(v.more);
  EXPECT_GT(*v.more, 0);
}

TEST(Seeds, AShiftBeyondTheMarginIsNoParity) {
  auto seeds = vector11();
  for (SeedPair& s : seeds) s.candidate += .01;
  EXPECT_EQ(judge_parity(seeds, .0015).call, Call::no_parity);
  for (SeedPair& s : seeds) s.candidate -= .02;
  EXPECT_EQ(judge_parity(seeds, .0015).call, Call::no_parity);
}

TEST(Seeds, FewerThanThreeSeedsAreNeverEqual) {
  const std::vector<SeedPair> two = {{1, 3, 3}, {2, 3, 3}};
  const Verdict v = judge_parity(two, 1);
  EXPECT_EQ(v.call, Call::not_shown);
  EXPECT_EQ(v.reason, "too_few");
  EXPECT_EQ(v.more, 1);
  EXPECT_FALSE(judge_parity({}, 1).estimate);
}

TEST(Seeds, EqualLossesOfThreeSeedsAreParity) {
  const std::vector<SeedPair> equal = {{1, 3, 3}, {2, 3.1, 3.1}, {3, 3.2, 3.2}};
  EXPECT_EQ(judge_parity(equal, .001).call, Call::parity);
  EXPECT_FALSE(correlation(std::vector<SeedPair>{{1, 3, 3}, {2, 3, 3}, {3, 3, 3}}));
}

TEST(Seeds, AWinnerNeedsSizeAndSignificance) {
  std::vector<SeedPair> seeds;
  for (int i = 0; i < 6; ++i) {
    const double base = 3 + .01 * i;
    seeds.push_back({i, base, base - .05 + .001 * (i % 3)});
  }
  const Verdict v = judge_seeds(seeds, .005);
  EXPECT_EQ(v.call, Call::better);
  EXPECT_LT(*v.p_less, .0025);
  EXPECT_EQ(win_share(seeds), 1);
  for (SeedPair& s : seeds) std::swap(s.base, s.candidate);
  EXPECT_EQ(judge_seeds(seeds, .005).call, Call::worse);
  EXPECT_EQ(win_share(seeds), 0);
}

TEST(Seeds, RefusesAWinnerBelowTheDetectableDifference) {
  const std::vector<SeedPair> noisy = {{1, 3.00, 2.97}, {2, 3.02, 3.01}, {3, 2.98, 3.00}};
  const Verdict v = judge_seeds(noisy, .001);
  EXPECT_EQ(v.call, Call::not_shown);
  EXPECT_LT(std::abs(*v.estimate), *v.mde);
}

TEST(Seeds, TheMarginFollowsFromTheExchangeRate) {
  const ScheduleLosses losses{.full_steps = 3325,
                              .short_steps = 3158.75,
                              .full = {3.28, 3.279, 3.281},
                              .shortened = {3.2875, 3.2864, 3.2886}};
  const auto rate = exchange_rate(losses);
  ASSERT_TRUE(rate);
  EXPECT_NEAR(*rate, .0075 / 166.25, 1e-12);
  EXPECT_NEAR(auto_margin(.0045 / 100, 3325), .00149625, 1e-15);
  ScheduleLosses flat = losses;
  flat.shortened = {3.279, 3.28, 3.2805};
  EXPECT_FALSE(exchange_rate(flat)) << "shorter schedules were no worse";
  flat.shortened = {3.29, 3.28};
  EXPECT_FALSE(exchange_rate(flat)) << "two seeds";
}

}  // namespace
}  // namespace assay::evidence
