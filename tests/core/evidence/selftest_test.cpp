// The self-test: exact bounds, drawn studies, blocks of stored pairs.
#include "core/evidence/selftest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "tests/core/store/sample_study.h"

namespace assay::evidence {
namespace {

TEST(SelftestBounds, AreClopperPearson) {
  const auto bound = [](int64_t called, int64_t n) {
    return Tally95{.comparisons = n, .called = called}.upper();
  };
  EXPECT_NEAR(bound(0, 200), 1 - std::pow(0.05, 1.0 / 200), 1e-12);  // the closed form for 0
  EXPECT_NEAR(bound(0, 200), 0.01487, 1e-5);
  EXPECT_NEAR(bound(0, 600), 0.00498, 1e-5);
  EXPECT_NEAR(bound(1, 600), 0.00788, 1e-5);
  EXPECT_EQ(Tally95{}.upper(), 1);
  EXPECT_EQ(Tally95{}.lower(), 0);
  EXPECT_NEAR((Tally95{.comparisons = 20, .called = 20}.lower()), std::pow(0.05, 1.0 / 20), 1e-12);
}

class Drawn : public testing::TestWithParam<Noise> {};

TEST_P(Drawn, FalseVerdictsAreRareAndThreePercentIsFound) {
  const auto methods = simulate_selftest(GetParam(), 7, {.equal = 1000, .injected = 200}, {0.03});
  ASSERT_EQ(methods.size(), 2u);
  EXPECT_EQ(methods[0].method, "compare");
  EXPECT_EQ(methods[0].pairs, 20);
  // Twice the nominal .0025 per side and what drift and tails add (.33 to .53 % at 20,000 studies).
  EXPECT_LE(methods[0].equal.rate(), 0.012);
  EXPECT_GE(methods[0].injected[0].found.rate(), 0.85);
  // The gate confirms: it is wrong far less often.
  EXPECT_LE(methods[1].equal.rate(), 0.002);
}

INSTANTIATE_TEST_SUITE_P(Noises, Drawn, testing::Values(Noise::drift, Noise::heavy));

TEST(Simulation, OneSeedGivesOneAnswerAndPowerGrowsWithTheEffect) {
  const SimulationSize size{.equal = 50, .injected = 60};
  const auto once = simulate_selftest(Noise::drift, 3, size, {0.01, 0.05});
  const auto again = simulate_selftest(Noise::drift, 3, size, {0.01, 0.05});
  EXPECT_EQ(once[0].injected[0].found.called, again[0].injected[0].found.called);
  EXPECT_EQ(once[0].injected[1].found.called, again[0].injected[1].found.called);
  EXPECT_LT(once[0].injected[0].found.called, once[0].injected[1].found.called);
  EXPECT_GE(once[0].injected[1].found.rate(), 0.9);
}

TEST(Band, NeedsFewFalseVerdictsAndPower) {
  Simulated s{.method = "compare", .equal = {.comparisons = 1000, .called = 5}};
  EXPECT_TRUE(s.within_band());
  s.injected = {{.work = 0.03, .found = {.comparisons = 100, .called = 89}}};
  EXPECT_FALSE(s.within_band());
  s.injected[0].found.called = 90;
  EXPECT_TRUE(s.within_band());
  s.equal.called = 6;
  EXPECT_FALSE(s.within_band());
}

/// `blocks` whole comparisons with a scatter of 0.2 %, each off by its change.
std::vector<Pair> blocks(const std::vector<double>& changes) {
  std::vector<Pair> pairs;
  const auto add = [&](int stage, int64_t index, double change) {
    const double scatter = 0.002 * static_cast<double>((index * 7) % 5 - 2) / 2;
    pairs.push_back({.stage = stage,
                     .index = index,
                     .baseline_first = index % 2 == 0,
                     .value_a = 1,
                     .value_b = 1 + change + scatter});
  };
  for (int64_t i = 0; i < static_cast<int64_t>(changes.size()) * 8; ++i) add(0, i, 0);
  for (int64_t i = 0; i < static_cast<int64_t>(changes.size()) * 20; ++i) {
    add(1, i, changes[static_cast<size_t>(i / 20)]);
  }
  return pairs;
}

TEST(Blocks, EveryTwentyPairsAreOneComparison) {
  int64_t open = -1;
  const auto verdicts = judge_blocks(blocks({0, 0.03, 0}), selftest_design(), open);
  EXPECT_EQ(open, 0);
  StoredSelftest stored;
  stored.add(0, verdicts);
  EXPECT_EQ(stored.equal.comparisons, 3);
  EXPECT_EQ(stored.equal.called, 1);
  EXPECT_TRUE(stored.injected.empty());
}

TEST(Blocks, AnUnfinishedOneIsOpenNotCounted) {
  auto pairs = blocks({0, 0});
  pairs.back().value_b.reset();
  int64_t open = 0;
  EXPECT_EQ(judge_blocks(pairs, selftest_design(), open).size(), 1u);
  EXPECT_EQ(open, 27);
}

TEST(Blocks, AFailedControlIsCountedApart) {
  auto pairs = blocks({0.03});
  for (Pair& p : pairs) {
    if (p.stage == 0) *p.value_b += 0.03;
  }
  int64_t open = 0;
  StoredSelftest stored;
  stored.add(0, judge_blocks(pairs, selftest_design(), open));
  EXPECT_EQ(stored.equal.invalid, 1);
  EXPECT_EQ(stored.equal.called, 0);
}

TEST(Injection, CountsWhatWasFoundSlowerWithTheMedianChange) {
  int64_t open = 0;
  StoredSelftest stored;
  stored.add(0.03, judge_blocks(blocks({0.03, 0, 0.029}), selftest_design(), open));
  ASSERT_EQ(stored.injected.size(), 1u);
  EXPECT_EQ(stored.equal.comparisons, 0);
  EXPECT_EQ(stored.injected[0].found.called, 2);
  // 2 of 3: the lower bound solves 3 p^2 - 2 p^3 = .05.
  EXPECT_EQ(injected_text(stored.injected[0]),
            "+3 % work: found in 2 of 3, 66.7 % (at least 13.5 %), step time +2.9 %");
  EXPECT_EQ(stored.detectable.size(), 3u);
  EXPECT_NE(detectable_text(stored).find("% in the middle of 3 comparisons ("), std::string::npos);
  EXPECT_EQ(detectable_text({}), "");
}

TEST(Injection, IsTheShareOfMicrobatches) {
  const auto config = [](int64_t batch, int64_t steps = 8) {
    return nlohmann::json{
        {"train", {{"global_batch", batch}, {"grad_accum", batch}, {"steps", steps}}}}
        .dump();
  };
  EXPECT_DOUBLE_EQ(extra_work(config(100), config(103)), 0.03);
  EXPECT_EQ(extra_work(config(100), config(100)), 0);
  EXPECT_THROW(extra_work(config(100), config(99)), Error);
  EXPECT_THROW(extra_work(config(100), config(103, 9)), Error);
}

TEST(Stored, NothingIsSaidWithoutASelftest) {
  store::TempFolder folder;
  const store::SampleStore sample(folder / "a.db");
  const store::Reader reader(folder / "a.db");
  EXPECT_TRUE(stored_selftests(reader).empty());
  EXPECT_EQ(selftest_note(stored_selftests(reader), store::kMachine), "");
}

}  // namespace
}  // namespace assay::evidence
