// Units: exact values, refusals, and printed figures.
#include "core/base/units.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kSecond = 1'000'000'000;

TEST(Units, Bytes) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("512B"), 512);
  EXPECT_EQ(parse_bytes("64KiB"), 65536);
  EXPECT_EQ(parse_bytes("64MiB"), 64 * kMiB);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1536 * kMiB);
  EXPECT_EQ(parse_bytes("10MB"), 10'000'000);
  EXPECT_EQ(parse_bytes("0.5KiB"), 512);
  for (const char* bad : {"", "64", "-1MiB", "0.3B", "9000000TiB", "MiB", "1.5.5GiB", "64MiBx",
                          "64 MiB", "1e3B", ".5KiB", "5.KiB", "0x10B", "1234567890123456789B"}) {
    EXPECT_EQ(parse_bytes(bad), std::nullopt) << bad;
  }
}

TEST(Units, Durations) {
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("250ms"), kSecond / 4);
  EXPECT_EQ(parse_duration("30s"), 30 * kSecond);
  EXPECT_EQ(parse_duration("1h30m"), 5400 * kSecond);
  EXPECT_EQ(parse_duration("1.5h"), 5400 * kSecond);
  EXPECT_EQ(parse_duration("1d2h"), 26 * 3600 * kSecond);
  for (const char* bad : {"", "30", "30m1h", "1h1h", "-1s", "0.5ns", "1h30", "1w", "s",
                          "100000000h", "90000h90000h", "106751d23h59m"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

TEST(Units, CountsAndPercent) {
  EXPECT_EQ(parse_count("7"), 7);
  EXPECT_EQ(parse_count("250k"), 250'000);
  EXPECT_EQ(parse_count("1.5M"), 1'500'000);
  EXPECT_EQ(parse_count("1G"), kSecond);
  EXPECT_EQ(parse_count("1.5"), std::nullopt);
  EXPECT_EQ(parse_count("-7"), std::nullopt);
  EXPECT_EQ(parse_percent("1%"), 0.01);
  EXPECT_EQ(parse_percent("0.1%"), 0.001);
  EXPECT_EQ(parse_percent("1"), std::nullopt);
  EXPECT_EQ(parse_percent("%"), std::nullopt);
  EXPECT_EQ(parse_percent("1e1%"), std::nullopt);
}

TEST(Units, ScalarsAsYamlSpellsThem) {
  EXPECT_EQ(parse_integer("010"), 10);
  EXPECT_EQ(parse_integer("-3"), -3);
  EXPECT_EQ(parse_integer("+3"), 3);
  for (const char* bad : {"", "1e3", "3.0", "0x10", "+-3", "9223372036854775808", "3 "}) {
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_real("1e-4"), 1e-4);
  EXPECT_EQ(parse_real("3"), 3.0);
  for (const char* bad : {"", "nan", "inf", "1e999", "0x1p3", "1,5", "+-1"}) {
    EXPECT_EQ(parse_real(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_boolean("true"), true);
  EXPECT_EQ(parse_boolean("yes"), std::nullopt);
}

TEST(Units, PrintedFigures) {
  EXPECT_EQ(print_bytes(512), "512 B");
  EXPECT_EQ(print_bytes(6 * 1024 * kMiB), "6.0 GiB");
  EXPECT_EQ(print_bytes(kMiB - 1), "1.0 MiB");
  EXPECT_EQ(print_bytes(-2048), "-2.0 KiB");
  EXPECT_EQ(print_duration(0), "0s");
  EXPECT_EQ(print_duration(600 * kSecond), "10m");
  EXPECT_EQ(print_duration(36 * 3600 * kSecond), "36h");
  EXPECT_EQ(print_duration(1'500'000'000), "1500ms");
  EXPECT_EQ(print_duration(7), "7ns");
  EXPECT_EQ(print_clock(42.9), "00:42");
  EXPECT_EQ(print_clock(3723), "1:02:03");
  EXPECT_EQ(print_clock(-1), "00:00");
}

TEST(Units, PrintedDurationsReadBack) {
  for (const int64_t ns : {int64_t{1}, int64_t{1'000}, 90 * kSecond, 7200 * kSecond}) {
    EXPECT_EQ(parse_duration(print_duration(ns)), ns);
  }
}

}  // namespace
}  // namespace assay
