// Rounding: as many digits as the range over runs allows, never fewer than three.
#include "core/report/figure.h"

#include <gtest/gtest.h>

namespace assay::report {
namespace {

TEST(Figure, DigitsFollowTheHalfWidth) {
  EXPECT_EQ(print(12396.4, decimals(12396.4, 58)), "12 396");
  EXPECT_EQ(print(12396.4, decimals(12396.4, 580)), "12 400");
  EXPECT_EQ(print(12396.4, decimals(12396.4, 0.5)), "12 396.4");  // never more than six digits
  EXPECT_EQ(print(12396.4, decimals(12396.4, 5000)), "12 400");   // never fewer than three
  EXPECT_EQ(print(3.28414, decimals(3.28414, 0.0006)), "3.28414");
  EXPECT_EQ(print(0.0123456, decimals(0.0123456, 0.00012)), "0.01235");
  EXPECT_EQ(print(19.94, decimals(19.94, {})), "19.94");
  EXPECT_EQ(print(3.28414, decimals(3.28414, 0)), "3.284");  // equal runs: four digits
}

TEST(Figure, PrintsSignsAndGroups) {
  EXPECT_EQ(print(0, 2), "0.00");
  EXPECT_EQ(print(999, 0), "999");
  EXPECT_EQ(print(1000, 0), "1 000");
  EXPECT_EQ(print(-1234567.5, 1), "-1 234 567.5");
  EXPECT_EQ(print(0.5, 1), "0.5");
}

TEST(Figure, DisplayIsInTheColumnsUnit) {
  const Figure figure =
      measured(1073741824.0 * 20, 1073741824.0 * 19.5, 1073741824.0 * 20.5, 1073741824);
  EXPECT_EQ(figure.display, "20.00");
  EXPECT_EQ(figure.display_low, "19.50");
  EXPECT_EQ(figure.display_high, "20.50");
  EXPECT_EQ(figure.value, 1073741824.0 * 20);
}

TEST(Figure, WhatIsMissingIsNeverAZero) {
  EXPECT_EQ(missing(FigureState::failed).display, "-");
  EXPECT_FALSE(missing(FigureState::not_measured).value);
  EXPECT_EQ(measured("inf").display, "inf");
  EXPECT_FALSE(measured("inf").value);
}

TEST(Figure, DisplayTextsAreReadBack) {
  EXPECT_EQ(parse_display("12 396.4"), 12396.4);
  EXPECT_EQ(parse_display("-"), std::nullopt);
}

}  // namespace
}  // namespace assay::report
