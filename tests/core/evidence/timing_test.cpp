// Verdicts on made-up pairs: controls, discarded and missing pairs, labels, claims adjusted
// together.
#include "core/evidence/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/evidence/assess.h"

namespace assay::evidence {
namespace {

using testing::Contains;
using testing::Not;

Pair pair(int stage, int64_t index, double change) {
  return {.stage = stage,
          .index = index,
          .baseline_first = index % 2 == 0,
          .run_a = 2 * index,
          .run_b = 2 * index + 1,
          .value_a = 1,
          .value_b = 1 + change};
}

/// n pairs of a stage around `change`, with a scatter of 0.2 %.
void add(std::vector<Pair>& pairs, int stage, int n, double change) {
  for (int i = 0; i < n; ++i) {
    pairs.push_back(pair(stage, i, change + 0.002 * ((i * 7) % 5 - 2) / 2.0));
  }
}

std::vector<Pair> block(double change, double control = 0) {
  std::vector<Pair> pairs;
  add(pairs, 0, 8, control);
  add(pairs, 1, 20, change);
  return pairs;
}

TEST(Timing, ControlFirstThenTheStages) {
  const auto verdicts = time_verdicts(block(0.03), {});
  ASSERT_EQ(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].stage, 0);
  EXPECT_EQ(verdicts[0].call, Call::same);
  EXPECT_EQ(verdicts[1].call, Call::slower);
  EXPECT_EQ(verdicts[1].control, "SAME");
  EXPECT_NEAR(*verdicts[1].change(), 0.03, 0.001);
}

TEST(Timing, AControlThatDiffersInvalidatesTheBlock) {
  const auto verdicts = time_verdicts(block(0.03, 0.02), {});
  EXPECT_EQ(verdicts[0].call, Call::slower);
  EXPECT_EQ(verdicts[1].call, Call::invalid);
}

TEST(Timing, WithoutControlItSaysSo) {
  std::vector<Pair> pairs;
  add(pairs, 1, 20, 0.03);
  const auto verdicts = time_verdicts(pairs, {});
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_THAT(verdicts[0].labels, Contains("no_control"));
}

TEST(Timing, NoPairsAreNoVerdict) {
  const auto verdicts = time_verdicts({}, {.pairs = 0});
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].call, Call::unresolved);
  EXPECT_EQ(verdicts[0].reason, kNoPairs);
  EXPECT_EQ(verdicts[0].more, 20);
}

TEST(Timing, MoreThanAQuarterDiscardedIsNoisy) {
  auto pairs = block(0.03);
  for (int i = 0; i < 5; ++i) pairs[static_cast<size_t>(8 + i)].discard_reason = "steal 5 % > 2 %";
  auto verdicts = time_verdicts(pairs, {});
  EXPECT_EQ(verdicts[1].call, Call::slower);
  EXPECT_EQ(verdicts[1].n_discarded, 5);
  EXPECT_EQ(verdicts[1].n_used, 15);
  pairs[13].discard_reason = "steal 5 % > 2 %";
  verdicts = time_verdicts(pairs, {});
  EXPECT_EQ(verdicts[1].call, Call::unresolved);
  EXPECT_EQ(verdicts[1].reason, "noisy");
}

TEST(Timing, PairsThatHaveNotRunAreMissingNotDiscarded) {
  auto pairs = block(0.03);
  for (size_t i = 8 + 6; i < pairs.size(); ++i) {
    pairs[i].value_a = pairs[i].value_b = std::nullopt;
    pairs[i].discard_reason = "not run";
  }
  const Verdict v = time_verdicts(pairs, {})[1];
  EXPECT_EQ(v.n_discarded, 0);
  EXPECT_EQ(v.reason, "too_few");
  EXPECT_TRUE(v.more);
}

TEST(Timing, TheOrderOfRunsIsWatched) {
  std::vector<Pair> pairs;
  for (int64_t i = 0; i < 20; ++i) pairs.push_back(pair(1, i, i % 2 == 0 ? 0.01 : -0.01));
  EXPECT_THAT(time_verdicts(pairs, {})[0].labels, Contains("order"));
  EXPECT_THAT(time_verdicts(block(0.0), {})[1].labels, Not(Contains("order")));
}

TEST(Timing, WhatTheWarmUpDetectorSaysIsALabel) {
  auto pairs = block(0.03);
  pairs[10].quality["steady"] = {"steady_v1 unsteady", "steady_v1"};
  EXPECT_THAT(time_verdicts(pairs, {})[1].labels, Contains("unsteady"));
}

Comparison claim(double p) {
  Comparison c{.design = {{"alpha", 0.0025}}};
  c.verdicts.push_back({.metric = "step_time",
                        .call = Call::slower,
                        .p_greater = p,
                        .p_less = 1,
                        .method_id = "pair.sr.v1"});
  return c;
}

TEST(Timing, ClaimsAreAdjustedTogether) {
  std::vector<Comparison> one = {claim(0.001)};
  adjust(one);
  EXPECT_EQ(one[0].verdicts[0].call, Call::slower);
  EXPECT_EQ(one[0].verdicts[0].p_adjusted, 0.001);
  std::vector<Comparison> three = {claim(0.001), claim(0.00001), claim(0.3)};
  adjust(three);
  EXPECT_EQ(three[0].verdicts[0].p_adjusted, 0.002);
  EXPECT_EQ(three[0].verdicts[0].call, Call::slower);
  std::vector<Comparison> many = {claim(0.001), claim(0.002), claim(0.0015)};
  adjust(many);
  EXPECT_EQ(many[0].verdicts[0].call, Call::unresolved);
  EXPECT_EQ(many[0].verdicts[0].reason, "holm");
}

}  // namespace
}  // namespace assay::evidence
