// Bars: rows of a chart with a name at the left, marks along one axis and a figure at the right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/report/axis.h"
#include "core/report/model.h"

namespace assay::report {

/// Most rows of one picture; the others are counted below it and stand in the table.
inline constexpr size_t kMostBars = 28;

/// Index of a column of the model; nothing if it has none.
std::optional<size_t> column_index(const Model& model, std::string_view name);

/// True when rows come from more than one machine: their times never mix.
bool several_machines(const Model& model);

/// "bf16 *" for the baseline; with the machine where rows come from several.
std::string row_label(const Model& model, const Row& row);

/// Rows with a figure, by value; the baseline is among the first `kMostBars` in any case. Then
/// those that have none because they failed.
struct BarRows {
  std::vector<const Row*> rows{};
  std::vector<const Row*> failed{};
  size_t hidden = 0;  ///< rows that are not drawn
};
BarRows bar_rows(const Model& model, size_t column, bool largest_first);

class BarChart {
 public:
  struct Titles {
    std::string picture{}, axis{};
  };
  /// `values` are the texts at the right; `range` is the axis.
  BarChart(const Titles& titles, const std::vector<std::string>& names,
           const std::vector<std::string>& values, const Range& range);

  Svg& svg() { return svg_; }
  const Scale& x() const { return x_; }
  double middle(size_t row) const { return kFirst + kRow * (static_cast<double>(row) + 0.5); }
  double top() const { return kFirst; }
  double bottom() const { return middle(rows_ - 1) + kRow / 2; }
  /// A word in place of marks: "OOM 2)".
  void word(size_t row, std::string_view text, std::string_view title);

  static constexpr double kRow = 20, kBar = 11, kFirst = 4;

 private:
  size_t rows_;
  Svg svg_;
  Scale x_;
};

}  // namespace assay::report
