// Ticks at round numbers, scales, and texts that fit.
#include "core/report/axis.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay::report {
namespace {

TEST(Ticks, AreMultiplesOfOneTwoOrFive) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(1.9, 4.6, 5), (std::vector<double>{2, 2.5, 3, 3.5, 4, 4.5}));
  EXPECT_EQ(round_ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
  EXPECT_EQ(round_ticks(3, 3, 5), (std::vector<double>{3}));
}

/// Property: whatever the range, between 2 and 12 ticks, all inside, evenly apart.
TEST(Ticks, AnyRangeHasAFewInside) {
  for (double low : {-1e6, -3.3, 0.0, 1e-7, 217.0}) {
    for (double length : {1e-6, 0.37, 9.99, 1234.5, 8e9}) {
      const double high = low + length;
      if (high - low < 1e-12 * std::abs(low)) continue;
      const auto ticks = round_ticks(low, high, 5);
      EXPECT_GE(ticks.size(), 2u) << low << " " << length;
      EXPECT_LE(ticks.size(), 12u) << low << " " << length;
      for (size_t i = 0; i < ticks.size(); ++i) {
        EXPECT_GE(ticks[i], low - 1e-6 * length);
        EXPECT_LE(ticks[i], high + 1e-6 * length);
        if (i > 1) {
          EXPECT_NEAR(ticks[i] - ticks[i - 1], ticks[1] - ticks[0], 1e-6 * length);
        }
      }
    }
  }
}

TEST(Ticks, TextsHaveEqualDecimalsAndATrueMinus) {
  EXPECT_EQ(tick_texts({0, 0.05, 0.1}), (std::vector<std::string>{"0.00", "0.05", "0.10"}));
  EXPECT_EQ(tick_texts({-20, 0, 20}), (std::vector<std::string>{"−20", "0", "20"}));
  EXPECT_EQ(tick_texts({0, 5000, 10000}), (std::vector<std::string>{"0", "5 000", "10 000"}));
}

TEST(Scale, IsLinearAndMayRunDownwards) {
  const Scale y{.low = 0, .high = 4, .from = 100, .to = 20};
  EXPECT_DOUBLE_EQ(y(0), 100);
  EXPECT_DOUBLE_EQ(y(1), 80);
  EXPECT_DOUBLE_EQ(y(4), 20);
}

TEST(Range, IgnoresWhatIsNoNumberAndIsNeverEmptyWhenDrawn) {
  Range range;
  range.add(std::nan(""));
  EXPECT_TRUE(range.empty);
  EXPECT_LT(range.widened(0.1).low, range.widened(0.1).high);
  range.add(5);
  EXPECT_LT(range.widened(0.1).low, 5);
  range.add(15);
  EXPECT_DOUBLE_EQ(range.widened(0.1).low, 4);
  EXPECT_DOUBLE_EQ(range.widened(0.1).high, 16);
}

TEST(Magnitude, KeepsNumbersShort) {
  EXPECT_EQ(magnitude_of(900).factor, 1);
  EXPECT_EQ(magnitude_of(122'880).word, "thousand");
  EXPECT_EQ(magnitude_of(3e6).word, "million");
  EXPECT_EQ(magnitude_of(3e9).word, "billion");
}

TEST(Text, IsCutInTheMiddleAndNeverInsideACharacter) {
  EXPECT_EQ(fitted("short", 100, 11), "short");
  const std::string name = "adamw_eager_selective_layer_fsdp2_größe";
  for (double width = 20; width < 260; width += 7) {
    const std::string cut = fitted(name, width, 11);
    EXPECT_TRUE(cut == "…" || text_width(cut, 11) <= width) << width;
    for (size_t i = 0; i + 1 < cut.size(); ++i) {  // 0xC3 leads the two bytes of ö and ß
      if (cut[i] == '\xC3') {
        EXPECT_EQ(static_cast<unsigned char>(cut[i + 1]) & 0xC0, 0x80);
      }
    }
  }
}

TEST(Text, IsEscapedForXml) {
  EXPECT_EQ(xml_escaped("a<b> & \"c\"\x01\n"), "a&lt;b&gt; &amp; &quot;c&quot;  ");
}

TEST(Marks, KeepOneDecimalAndTheirTitles) {
  Svg svg(10, 20, "what & why");
  svg.circle({1.26, 2}, 3, "f0", "a<b");
  const Point line[] = {{0, 0}, {10, 5.55}, {20, 5.55}};
  svg.path(line, "s1");
  EXPECT_EQ(svg.str(), R"(<svg viewBox="0 0 10 20" role="img" aria-label="what &amp; why">)"
                       R"(<circle class="f0" cx="1.3" cy="2" r="3"><title>a&lt;b</title></circle>)"
                       R"(<path class="s1" d="M0,0l10,5.6 10,0"/></svg>)");
}

}  // namespace
}  // namespace assay::report
