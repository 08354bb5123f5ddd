// Ticks and the frame of a chart.
#include "core/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/report/figure.h"

namespace assay::report {
namespace {

constexpr int kTicksX = 5, kTicksY = 5;
constexpr double kTop = 24, kBottom = 38, kRight = 12, kTickGap = 6;

double widest(const std::vector<std::string>& texts) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, text_width(text, kTextSize));
  return width;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  if (!(high > low) || count < 1) return {low};
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double share = rough / power;
  const double step = power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
  const double slack = step * 1e-9;
  std::vector<double> ticks;
  for (auto k = static_cast<int64_t>(std::ceil((low - slack) / step));; ++k) {
    const double tick = static_cast<double>(k) * step;
    if (tick > high + slack) return ticks;
    ticks.push_back(k == 0 ? 0 : tick);
  }
}

std::vector<std::string> tick_texts(const std::vector<double>& ticks) {
  double step = 0;
  if (ticks.size() > 1) step = ticks[1] - ticks[0];
  const double unit = step > 0 ? step : std::abs(ticks.empty() ? 1 : ticks[0]);
  const int places =
      unit > 0 ? std::max(0, -static_cast<int>(std::floor(std::log10(unit) + 1e-9))) : 0;
  std::vector<std::string> texts;
  for (const double tick : ticks) {
    std::string text = print(tick, places);
    if (text.starts_with('-')) text.replace(0, 1, "−");
    texts.push_back(text);
  }
  return texts;
}

Magnitude magnitude_of(double largest) {
  if (largest >= 2e9) return {1e9, "billion"};
  if (largest >= 2e6) return {1e6, "million"};
  if (largest >= 2e4) return {1e3, "thousand"};
  return {};
}

void Range::add(double value) {
  if (!std::isfinite(value)) return;
  low = empty ? value : std::min(low, value);
  high = empty ? value : std::max(high, value);
  empty = false;
}

Range Range::widened(double share) const {
  if (empty) return {.low = 0, .high = 1, .empty = false};
  const double length = high - low;
  if (length > 0) {
    return {.low = low - share * length, .high = high + share * length, .empty = false};
  }
  const double around = low == 0 ? 1 : std::abs(low) * 0.1;
  return {.low = low - around, .high = high + around, .empty = false};
}

Plot::Plot(const Titles& titles, const Range& x, const Range& y, double height)
    : svg_(kChartWidth, height, titles.picture) {
  const auto labels = tick_texts(round_ticks(y.low, y.high, kTicksY));
  x_ = {.low = x.low,
        .high = x.high,
        .from = std::ceil(widest(labels)) + kTickGap + 2,
        .to = kChartWidth - kRight};
  y_ = {.low = y.low, .high = y.high, .from = height - kBottom, .to = kTop};
  draw_axes(titles);
}

void Plot::draw_axes(const Titles& titles) {
  const auto ys = round_ticks(y_.low, y_.high, kTicksY);
  const auto y_texts = tick_texts(ys);
  for (size_t i = 0; i < ys.size(); ++i) {
    const double y = y_(ys[i]);
    svg_.line({x_.from, y}, {x_.to, y}, "grid");
    svg_.text({x_.from - kTickGap, y + 4}, y_texts[i], "tick", Anchor::end);
  }
  const auto xs = round_ticks(x_.low, x_.high, kTicksX);
  const auto x_texts = tick_texts(xs);
  for (size_t i = 0; i < xs.size(); ++i) {
    const double x = x_(xs[i]);
    svg_.line({x, y_.from}, {x, y_.from + 4}, "axis");
    const double half = text_width(x_texts[i], kTextSize) / 2;
    const double room = std::min(x, kChartWidth - half - 1);
    svg_.text({room, y_.from + 16}, x_texts[i], "tick", Anchor::middle);
  }
  svg_.line({x_.from, y_.from}, {x_.to, y_.from}, "axis");
  svg_.text({0, 11}, titles.y, "name");
  svg_.text({x_.to, y_.from + 32}, titles.x, "name", Anchor::end);
}

}  // namespace assay::report
