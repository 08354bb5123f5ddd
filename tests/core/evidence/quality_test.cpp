// Which pairs the quality filter discards, one condition at a time.
#include "core/evidence/quality.h"

#include <gtest/gtest.h>

namespace assay::evidence {
namespace {

Quality quiet(int64_t started_s = 0) {
  return {.steal_share = 0.001,
          .pressure_share = 0.05,
          .involuntary_switches = 60,
          .clock_hz = 2.5e9,
          .started_us = started_s * 1'000'000,
          .ended_us = (started_s + 10) * 1'000'000};
}

std::string reason(const Quality& a, const Quality& b) { return discard_reason(a, b, {}, 60.0); }

TEST(Quality, QuietPairsAreKept) { EXPECT_EQ(reason(quiet(0), quiet(11)), ""); }

TEST(Quality, EitherRunCanDiscardThePair) {
  Quality stolen = quiet(11);
  stolen.steal_share = 0.031;
  EXPECT_EQ(reason(quiet(), stolen), "steal 3.1 % > 2 %");
  EXPECT_EQ(reason(stolen, quiet()), "steal 3.1 % > 2 %");
  Quality pressed = quiet(11);
  pressed.pressure_share = 0.4;
  EXPECT_EQ(reason(quiet(), pressed), "CPU pressure 40 % > 20 %");
  Quality switched = quiet(11);
  switched.involuntary_switches = 301;
  EXPECT_EQ(reason(quiet(), switched), "301 involuntary switches, usually 60");
  Quality hot = quiet(11);
  hot.throttled_share = 0.02;
  EXPECT_EQ(reason(quiet(), hot), "throttled 2 % > 1 %");
  Quality slow = quiet(11);
  slow.clock_hz = 2.4e9;
  EXPECT_EQ(reason(quiet(), slow), "clock change 4 % > 1 %");
}

TEST(Quality, RunsApartAreNoPair) {
  EXPECT_EQ(reason(quiet(0), quiet(41)), "not back to back");
  EXPECT_EQ(reason(quiet(41), quiet(0)), "not back to back");
}

TEST(Quality, WhatWasNotRecordedFailsNothing) {
  EXPECT_EQ(discard_reason({}, {}, {}, std::nullopt), "");
  Quality switched = quiet(11);
  switched.involuntary_switches = 5000;
  EXPECT_EQ(discard_reason(quiet(), switched, {}, std::nullopt), "");
}

TEST(Quality, AHandfulOfSwitchesIsUsual) {
  Quality few = quiet(), more = quiet(11);
  few.involuntary_switches = 2;
  more.involuntary_switches = 40;
  EXPECT_EQ(discard_reason(few, more, {}, 2.0), "");
}

TEST(Quality, UsualSwitchesAreTheMedian) {
  std::vector<Quality> runs = {quiet(), quiet(), quiet(), {}};
  runs[0].involuntary_switches = 10;
  runs[1].involuntary_switches = 900;
  EXPECT_EQ(usual_switches(runs), 60);
  EXPECT_FALSE(usual_switches({}));
}

}  // namespace
}  // namespace assay::evidence
