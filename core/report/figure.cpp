// Rounding and printing of figures.
#include "core/report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/units.h"

namespace assay::report {
namespace {

constexpr int kDigitsOfHalfWidth = 2;
constexpr int kFewestDigits = 3;
constexpr int kMostDigits = 6;
constexpr int kDigitsWithoutHalfWidth = 4;

/// Decimal places that show `digits` significant digits of `value`.
int places(double value, int digits) {
  if (value == 0) return digits - 1;
  return digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value))));
}

}  // namespace

int decimals(double value, std::optional<double> half_width) {
  if (!half_width || *half_width <= 0 || !std::isfinite(*half_width)) {
    return places(value, kDigitsWithoutHalfWidth);
  }
  return std::clamp(places(*half_width, kDigitsOfHalfWidth), places(value, kFewestDigits),
                    places(value, kMostDigits));
}

std::string print(double value, int decimals) {
  const double unit = std::pow(10.0, -decimals);
  const double rounded = decimals < 0 ? std::round(value / unit) * unit : value;
  const std::string digits = fmt::format("{:.{}f}", rounded, std::max(decimals, 0));
  const size_t sign = digits.front() == '-' ? 1 : 0;
  size_t point = std::min(digits.find('.'), digits.size());
  std::string text = digits;
  while (point > sign + 3) {
    point -= 3;
    text.insert(point, " ");
  }
  return text;
}

Figure measured(double value, std::optional<double> low, std::optional<double> high, double scale) {
  Figure figure{.value = value, .low = low, .high = high, .state = FigureState::measured};
  const auto half_width =
      low && high ? std::optional((*high - *low) / 2 / scale) : std::optional<double>();
  const int places = decimals(value / scale, half_width);
  figure.display = print(value / scale, places);
  if (low) figure.display_low = print(*low / scale, places);
  if (high) figure.display_high = print(*high / scale, places);
  return figure;
}

Figure measured(std::string nonfinite) {
  Figure figure{.state = FigureState::measured};
  figure.display = nonfinite;
  figure.nonfinite = std::move(nonfinite);
  return figure;
}

Figure missing(FigureState state) {
  Figure figure{.state = state};
  figure.display = "-";
  return figure;
}

std::string with_range(const Figure& figure) {
  if (figure.display_low.empty() || figure.low == figure.high) return figure.display;
  return fmt::format("{} [{}, {}]", figure.display, figure.display_low, figure.display_high);
}

std::optional<double> parse_display(std::string_view text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [](char c) { return c != ' '; });
  return parse_real(digits);
}

}  // namespace assay::report
