// Exact reading of numbers with units, and the printing of figures.
#include "core/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>

namespace assay {
namespace {

struct Unit {
  std::string_view name;
  int64_t factor;
};

constexpr std::array<Unit, 10> kByteUnits{{{"B", 1},
                                           {"KiB", int64_t{1} << 10},
                                           {"MiB", int64_t{1} << 20},
                                           {"GiB", int64_t{1} << 30},
                                           {"TiB", int64_t{1} << 40},
                                           {"kB", 1'000},
                                           {"KB", 1'000},
                                           {"MB", 1'000'000},
                                           {"GB", 1'000'000'000},
                                           {"TB", 1'000'000'000'000}}};
// Longest first: a composed duration names its units in this order.
constexpr std::array<Unit, 7> kTimeUnits{{{"d", 86'400'000'000'000},
                                          {"h", 3'600'000'000'000},
                                          {"m", 60'000'000'000},
                                          {"s", 1'000'000'000},
                                          {"ms", 1'000'000},
                                          {"us", 1'000},
                                          {"ns", 1}}};
constexpr std::array<Unit, 5> kCountUnits{
    {{"", 1}, {"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}, {"T", 1'000'000'000'000}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// digits [. digits] as a whole number over a power of ten.
struct Decimal {
  int64_t mantissa = 0;
  int64_t divisor = 1;
};

/// Takes a decimal off the front of `text`; nothing if there is none or it has over 18 digits.
std::optional<Decimal> take_decimal(std::string_view& text) {
  constexpr int kMostDigits = 18;  // fits an int64_t
  Decimal value;
  int digits = 0, before_point = 0;
  bool point = false;
  size_t i = 0;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !point)); ++i) {
    if (text[i] == '.') {
      point = true;
      before_point = digits;
      continue;
    }
    if (++digits > kMostDigits) return std::nullopt;
    value.mantissa = value.mantissa * 10 + (text[i] - '0');
    if (point) value.divisor *= 10;
  }
  if (digits == 0 || (point && (before_point == 0 || before_point == digits))) return std::nullopt;
  text.remove_prefix(i);
  return value;
}

/// value * factor if it is a whole number that fits.
std::optional<int64_t> product(const Decimal& value, int64_t factor) {
  const __int128 scaled = static_cast<__int128>(value.mantissa) * factor;
  if (scaled % value.divisor != 0) return std::nullopt;
  const __int128 result = scaled / value.divisor;
  if (result > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return static_cast<int64_t>(result);
}

std::optional<int64_t> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  const std::optional<Decimal> value = take_decimal(text);
  if (!value) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name == text) return product(*value, unit.factor);
  }
  if (text.empty() && value->mantissa == 0) return 0;  // a bare zero needs no unit
  return std::nullopt;
}

/// The word of letters at the front of `text`.
std::string_view take_word(std::string_view& text) {
  size_t size = 0;
  while (size < text.size() && text[size] >= 'a' && text[size] <= 'z') ++size;
  const std::string_view word = text.substr(0, size);
  text.remove_prefix(size);
  return word;
}

std::string formatted(const char* format, double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, format, value, unit);
  return text;
}

}  // namespace

std::optional<int64_t> parse_bytes(std::string_view text) {
  return parse_with_unit(text, kByteUnits);
}

std::optional<int64_t> parse_count(std::string_view text) {
  return parse_with_unit(text, kCountUnits);
}

std::optional<int64_t> parse_duration(std::string_view text) {
  if (text == "0") return 0;
  int64_t total = 0;
  size_t next_unit = 0;
  do {
    const std::optional<Decimal> value = take_decimal(text);
    if (!value) return std::nullopt;
    const std::string_view word = take_word(text);
    while (next_unit < kTimeUnits.size() && kTimeUnits[next_unit].name != word) ++next_unit;
    if (next_unit == kTimeUnits.size()) return std::nullopt;
    const std::optional<int64_t> part = product(*value, kTimeUnits[next_unit++].factor);
    if (!part || __builtin_add_overflow(total, *part, &total)) return std::nullopt;
  } while (!text.empty());
  return total;
}

std::optional<double> parse_percent(std::string_view text) {
  if (text.empty() || text.back() != '%') return std::nullopt;
  text.remove_suffix(1);
  if (text.find_first_of("eE") != std::string_view::npos) return std::nullopt;
  return parse_real(std::string(text) + "e-2");  // one rounding, so 0.1% is the double 0.001
}

std::optional<int64_t> parse_integer(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && is_digit(text[1])) text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::string print_bytes(int64_t bytes) {
  constexpr std::array<const char*, 5> names{"KiB", "MiB", "GiB", "TiB", "PiB"};
  constexpr double kRoundsUp = 1023.95;  // %.1f would print 1024.0
  if (bytes > -1024 && bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t i = 0;
  for (; std::fabs(value) >= kRoundsUp && i + 1 < names.size(); ++i) value /= 1024;
  return formatted("%.1f %s", value, names[i]);
}

std::string print_duration(int64_t nanoseconds) {
  if (nanoseconds == 0) return "0s";
  for (const Unit& unit : kTimeUnits) {
    if (unit.name != "d" && nanoseconds % unit.factor == 0) {
      return std::to_string(nanoseconds / unit.factor) + std::string(unit.name);
    }
  }
  return {};  // unreachable: everything is a multiple of 1 ns
}

std::string print_clock(double seconds) {
  const int64_t total = seconds > 0 ? static_cast<int64_t>(seconds) : 0;
  const int64_t hours = total / 3600, minutes = total / 60 % 60;
  char text[40];
  if (hours > 0) {
    std::snprintf(text, sizeof text, "%lld:%02d:%02d", static_cast<long long>(hours),
                  static_cast<int>(minutes), static_cast<int>(total % 60));
  } else {
    std::snprintf(text, sizeof text, "%02d:%02d", static_cast<int>(minutes),
                  static_cast<int>(total % 60));
  }
  return text;
}

}  // namespace assay
