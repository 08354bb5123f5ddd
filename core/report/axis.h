// Axis: from values to places on a picture, with ticks at round numbers.
#pragma once

#include <string>
#include <vector>

#include "core/report/svg.h"

namespace assay::report {

/// A linear scale: `low` is drawn at `from`, `high` at `to`.
struct Scale {
  double low = 0, high = 1;
  double from = 0, to = 1;

  double operator()(double value) const {
    return from + (value - low) / (high - low) * (to - from);
  }
};

/// Multiples of 1, 2 or 5 times a power of ten inside [low, high]; about `count` of them.
std::vector<double> round_ticks(double low, double high, int count);

/// Tick texts with equal decimals, thin groups of three digits, a true minus sign.
std::vector<std::string> tick_texts(const std::vector<double>& ticks);

/// A factor that keeps numbers below 1,000, and its word: {1e6, "million"}, {1, ""}.
struct Magnitude {
  double factor = 1;
  std::string word{};
};
Magnitude magnitude_of(double largest);

/// Values to show on one axis, widened to a drawable range. `from_zero`: bars and rates.
struct Range {
  double low = 0, high = 0;
  bool empty = true;
  void add(double value);
  Range widened(double share) const;  ///< by a share of its length at both ends
};

/// The rectangle of a chart with two linear axes, grid lines and titles.
class Plot {
 public:
  struct Titles {
    std::string picture{}, x{}, y{};  ///< axes: name and unit
  };
  Plot(const Titles& titles, const Range& x, const Range& y, double height = 250);

  Point at(double x, double y) const { return {x_(x), y_(y)}; }
  double left() const { return x_.from; }
  double right() const { return x_.to; }
  double top() const { return y_.to; }
  double bottom() const { return y_.from; }
  const Scale& x() const { return x_; }
  const Scale& y() const { return y_; }
  Svg& svg() { return svg_; }

 private:
  void draw_axes(const Titles& titles);

  Svg svg_;
  Scale x_, y_;
};

inline constexpr double kChartWidth = 420;  ///< units of every chart; type is 11 units high
inline constexpr double kTextSize = 11;

}  // namespace assay::report
