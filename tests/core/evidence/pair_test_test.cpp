// Verdicts on pairs: the stated vectors, the order of the rules, and error rates by simulation.
#include "core/evidence/pair_test.h"

#include <gtest/gtest.h>

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>
#include <cmath>

#include "tests/core/evidence/vectors.h"

namespace assay::evidence {
namespace {

const PairRule kLoose{.alpha = 0.005, .minimum = 8};

bool has(const Verdict& v, const std::string& label) {
  return std::find(v.labels.begin(), v.labels.end(), label) != v.labels.end();
}

TEST(PairVerdict, FollowsTheStatedVectors) {
  for (const Vector& v : vectors()) {
    const Verdict verdict = judge_pairs(v.d, kLoose);
    EXPECT_STREQ(name_of(verdict.call), v.verdict) << v.name;
    EXPECT_NEAR(*verdict.p_same, v.p_same, 1e-9) << v.name;
  }
  EXPECT_NEAR(100 * *judge_pairs(vectors()[0].d, kLoose).change(), 3.0918, 5e-5);
  EXPECT_TRUE(has(judge_pairs(vectors()[5].d, kLoose), "below_minimum"));
}

TEST(PairVerdict, NamesTheFasterSide) {
  std::vector<double> d = vectors()[0].d;
  for (double& x : d) x = -x;
  const Verdict v = judge_pairs(d, kLoose);
  EXPECT_EQ(v.call, Call::faster);
  EXPECT_LT(*v.change(), -0.02);
  EXPECT_LT(v.change_interval()->low, v.change_interval()->high);
}

TEST(PairVerdict, AFailedControlInvalidatesWhateverThePairsSay) {
  const Verdict control = judge_pairs(vectors()[0].d, control_rule(kLoose));
  ASSERT_EQ(control.call, Call::slower);
  const Verdict v = judge_pairs(vectors()[3].d, kLoose, &control);
  EXPECT_EQ(v.call, Call::invalid);
  EXPECT_EQ(v.reason, "control");
  EXPECT_EQ(v.control, "SLOWER");
}

TEST(PairVerdict, TooFewPairsAreNeverAnAnswer) {
  const auto d = vectors()[0].d;
  EXPECT_EQ(judge_pairs(d, {.alpha = 0.0025}).reason, "too_few");
  const Verdict none = judge_pairs({}, {});
  EXPECT_EQ(none.call, Call::unresolved);
  EXPECT_FALSE(none.estimate);
  EXPECT_EQ(judge_pairs(std::vector{0.03}, {}).call, Call::unresolved);
}

TEST(PairVerdict, AControlIsTestedWhereEightPairsCanFail) {
  const PairRule control = control_rule({});
  EXPECT_EQ(control.alpha, 0.005);
  EXPECT_EQ(judge_pairs(vectors()[0].d, control).call, Call::slower);
  EXPECT_EQ(minimum_pairs(0.005), 8);
  EXPECT_EQ(minimum_pairs(0.0025), 10);
}

TEST(PairVerdict, SaysHowManyMorePairsWouldSettleIt) {
  const Verdict wide = judge_pairs(vectors()[4].d, kLoose);  // V5: estimate 85, s 133
  ASSERT_EQ(wide.call, Call::unresolved);
  EXPECT_EQ(wide.reason, "not_significant");
  ASSERT_TRUE(wide.more);
  EXPECT_GT(*wide.more, 10);
  const Verdict settled = judge_pairs(vectors()[1].d, kLoose);
  EXPECT_FALSE(settled.more);
}

TEST(PairVerdict, TheGateIsNeverRedBelowTheDetectableEffect) {
  std::vector<double> d = scaled({700, 10, 450, 30, 600, 20, 300, 40, 110, 500});  // wild but > 0
  PairRule rule = kLoose;
  const Verdict plain = judge_pairs(d, rule);
  ASSERT_EQ(plain.call, Call::slower);
  ASSERT_TRUE(has(plain, "below_mde"));
  rule.above_mde = true;
  const Verdict gated = judge_pairs(d, rule);
  EXPECT_EQ(gated.call, Call::unresolved);
  EXPECT_EQ(gated.reason, "below_mde");
}

TEST(PairVerdict, OrderIsTestedByABinomial) {
  EXPECT_NEAR(order_p(4, 37), 1.084e-6, 5e-10);
  EXPECT_NEAR(order_p(33, 37), 1.084e-6, 5e-10);
  EXPECT_EQ(order_p(10, 20), 1);
  EXPECT_EQ(order_p(0, 0), 1);
}

TEST(PairVerdict, HolmKeepsTheOrderOfItsInput) {
  const std::vector<double> p = {.0040, .0001, .0300, .0110, .0009, .2000};
  const std::vector<double> expected = {.0160, .0006, .0600, .0330, .0045, .2000};
  const std::vector<double> adjusted = holm(p);
  for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-15) << i;
}

TEST(PairVerdict, TwoStagesMustAgree) {
  using enum Call;
  EXPECT_EQ(two_stages(slower, slower), slower);
  EXPECT_EQ(two_stages(slower, faster), unresolved);
  EXPECT_EQ(two_stages(slower, same), unresolved);
  EXPECT_EQ(two_stages(slower, std::nullopt), unresolved);
  EXPECT_EQ(two_stages(same, std::nullopt), same);
  EXPECT_EQ(two_stages(slower, invalid), invalid);
}

/// Studies of n pairs with noise s and effect `mean`; share that ends with `call`.
double share_of(Call call, double mean, double s, int n, int studies, uint64_t seed) {
  boost::random::mt19937_64 random(seed);
  boost::random::normal_distribution<double> noise(mean, s);
  int found = 0;
  for (int study = 0; study < studies; ++study) {
    std::vector<double> d;
    for (int i = 0; i < n; ++i) d.push_back(noise(random));
    found += judge_pairs(d, {}).call == call;
  }
  return static_cast<double>(found) / studies;
}

TEST(PairVerdict, FalseAndFoundVerdictsInSimulation) {
  constexpr int kStudies = 1000;
  const double false_calls = share_of(Call::slower, 0, 0.02, 20, kStudies, 1) +
                             share_of(Call::faster, 0, 0.02, 20, kStudies, 1);
  EXPECT_LE(false_calls, 0.005 + 3 * std::sqrt(0.005 / kStudies));  // 2 alpha
  EXPECT_GE(share_of(Call::slower, std::log(1.03), 0.01, 20, kStudies, 2), 0.99);
  EXPECT_EQ(share_of(Call::same, std::log(1.03), 0.01, 20, kStudies, 3), 0);
  EXPECT_GE(share_of(Call::same, 0, 0.005, 20, kStudies, 4), 0.99);
  // At the margin itself SAME is a false claim: at most 5 %.
  EXPECT_LE(share_of(Call::same, std::log(1.01), 0.01, 20, kStudies, 5), 0.065);
}

}  // namespace
}  // namespace assay::evidence
