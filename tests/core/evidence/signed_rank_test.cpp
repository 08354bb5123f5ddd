// The exact test against stated vectors, against enumeration of all sign patterns, and its interval
// against simulated coverage.
#include "core/evidence/signed_rank.h"

#include <gtest/gtest.h>

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>
#include <cmath>

#include "tests/core/evidence/vectors.h"

namespace assay::evidence {
namespace {

constexpr double kUnit = 1e-4;

/// P(W >= w) over all 2^n sign patterns with mid-ranks, the definition itself.
double enumerated_p_greater(const std::vector<double>& d) {
  std::vector<double> magnitude;
  for (const double x : d) {
    if (x != 0) magnitude.push_back(std::abs(x));
  }
  const size_t n = magnitude.size();
  std::vector<double> rank(n);
  for (size_t i = 0; i < n; ++i) {
    double below = 0, equal = 0;
    for (const double other : magnitude) {
      below += other < magnitude[i];
      equal += other == magnitude[i];
    }
    rank[i] = below + (equal + 1) / 2;
  }
  double observed = 0;
  size_t at = 0;
  for (const double x : d) {
    if (x == 0) continue;
    if (x > 0) observed += rank[at];
    ++at;
  }
  int64_t as_large = 0;
  for (size_t pattern = 0; pattern < (size_t{1} << n); ++pattern) {
    double w = 0;
    for (size_t i = 0; i < n; ++i) w += (pattern >> i & 1) ? rank[i] : 0;
    as_large += w >= observed;
  }
  return static_cast<double>(as_large) / std::pow(2.0, static_cast<double>(n));
}

TEST(SignedRank, GivesTheStatedVectors) {
  for (const Vector& v : vectors()) {
    const SignedRank test = signed_rank(v.d);
    EXPECT_EQ(test.w_plus, v.w_plus) << v.name;
    EXPECT_NEAR(test.p_greater, v.p_greater, 1e-12) << v.name;
    EXPECT_NEAR(test.p_less, v.p_less, 1e-9) << v.name;
    EXPECT_NEAR(hodges_lehmann(v.d) / kUnit, v.estimate, 1e-9) << v.name;
    const auto interval = signed_rank_interval(v.d, 0.005);
    ASSERT_TRUE(interval) << v.name;
    EXPECT_NEAR(interval->low / kUnit, v.low, 1e-9) << v.name;
    EXPECT_NEAR(interval->high / kUnit, v.high, 1e-9) << v.name;
    if (v.level > 0) {
      EXPECT_NEAR(interval->level, v.level, 1e-8) << v.name;
    }
  }
}

TEST(SignedRank, DropsZerosForTheTestOnly) {
  const Vector& v3 = vectors()[2];
  EXPECT_EQ(signed_rank(v3.d).n, 9);
  std::vector<double> without = v3.d;
  std::erase(without, 0.0);
  EXPECT_EQ(signed_rank(v3.d).p_greater, signed_rank(without).p_greater);
  EXPECT_EQ(hodges_lehmann(std::vector{0.0, 0.0, 1.0}), 0.25) << "zeros count in the estimate";
}

TEST(SignedRank, IntervalsOfOtherLevels) {
  const auto ninety = signed_rank_interval(vectors()[1].d, 0.05);
  ASSERT_TRUE(ninety);
  EXPECT_NEAR(ninety->low / kUnit, -7, 1e-9);
  EXPECT_NEAR(ninety->high / kUnit, 7.5, 1e-9);
  EXPECT_EQ(ninety->level, .916015625);
  const auto strict = signed_rank_interval(vectors()[3].d, 0.0025);
  ASSERT_TRUE(strict);
  EXPECT_NEAR(strict->low / kUnit, 283.5, 1e-9);
  EXPECT_NEAR(strict->high / kUnit, 350, 1e-9);
  EXPECT_NEAR(strict->level, .99514008, 5e-9);
}

TEST(SignedRank, SmallestSignificantSums) {
  struct Row {
    int n;
    double alpha, w, p;
  };
  const Row rows[] = {{8, .005, 36, .0039}, {10, .005, 52, .00488},  {10, .0025, 54, .00195},
                      {12, .005, 71, 0},    {12, .0025, 73, 0},      {16, .005, 117, 0},
                      {16, .0025, 121, 0},  {20, .005, 173, .00472}, {20, .0025, 178, .00243},
                      {30, .005, 356, 0},   {30, .0025, 367, 0}};
  for (const Row& row : rows) {
    // All positive but one set of ranks: start from the full sum and take ranks away.
    const double full = row.n * (row.n + 1) / 2.0;
    const auto p_at = [&](double w) {
      std::vector<double> d;
      double left = full - w;
      for (int rank = row.n; rank >= 1; --rank) {
        const bool negative = left >= rank;
        if (negative) left -= rank;
        d.push_back(negative ? -rank : rank);
      }
      return signed_rank(d).p_greater;
    };
    EXPECT_LE(p_at(row.w), row.alpha) << row.n;
    EXPECT_GT(p_at(row.w - 1), row.alpha) << row.n;
    if (row.p > 0) {
      EXPECT_NEAR(p_at(row.w), row.p, 5e-5) << row.n;
    }
  }
}

TEST(SignedRank, TooFewPairsHaveNoInterval) {
  EXPECT_FALSE(signed_rank_interval(std::vector{1.0, 2.0, 3.0}, 0.005));
  EXPECT_FALSE(signed_rank_interval(std::vector<double>{}, 0.05));
  EXPECT_EQ(signed_rank(std::vector<double>{}).p_greater, 1);
  EXPECT_EQ(signed_rank(std::vector{0.0, 0.0}).n, 0);
}

TEST(SignedRank, AgreesWithEnumerationWhateverTheTies) {
  boost::random::mt19937_64 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<double> d;
    for (int i = 0; i < 9; ++i) d.push_back(static_cast<double>(random() % 7) - 3);
    EXPECT_NEAR(signed_rank(d).p_greater, enumerated_p_greater(d), 1e-12) << trial;
  }
}

TEST(SignedRank, NegatedDifferencesSwapTheTails) {
  for (const Vector& v : vectors()) {
    std::vector<double> negated = v.d;
    for (double& x : negated) x = -x;
    EXPECT_NEAR(signed_rank(negated).p_less, signed_rank(v.d).p_greater, 1e-12) << v.name;
    EXPECT_NEAR(hodges_lehmann(negated), -hodges_lehmann(v.d), 1e-15) << v.name;
  }
}

TEST(SignedRank, IntervalsCoverAsOftenAsTheySay) {
  constexpr int kStudies = 1500;
  boost::random::mt19937_64 random(20261130);
  boost::random::normal_distribution<double> noise(0.03, 0.01);
  for (const int n : {8, 10, 20}) {
    int covered = 0;
    double level = 0;
    for (int study = 0; study < kStudies; ++study) {
      std::vector<double> d;
      for (int i = 0; i < n; ++i) d.push_back(noise(random));
      const auto interval = signed_rank_interval(d, 0.05);
      level = interval->level;
      covered += interval->low <= 0.03 && 0.03 <= interval->high;
    }
    const double sd = std::sqrt(level * (1 - level) / kStudies);
    EXPECT_NEAR(static_cast<double>(covered) / kStudies, level, 4 * sd) << n;
  }
}

}  // namespace
}  // namespace assay::evidence
