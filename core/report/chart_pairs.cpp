// Pairs of baseline and candidate in run order, with the estimate and its interval.
#include <fmt/format.h>

#include "core/report/axis.h"
#include "core/report/chart.h"
#include "core/report/verdicts.h"

namespace assay::report {
namespace {

Range change_range(const VerdictRow& row) {
  Range range;
  range.add(0);
  for (const PairPoint& pair : row.pairs) range.add(pair.change_pct);
  if (row.change.low) range.add(*row.change.low);
  if (row.change.high) range.add(*row.change.high);
  return range.widened(0.08);
}

void draw_estimate(Plot& plot, const VerdictRow& row) {
  if (row.change.low && row.change.high) {
    const double top = plot.y()(*row.change.high), bottom = plot.y()(*row.change.low);
    plot.svg().rect({plot.left(), top}, plot.right() - plot.left(), bottom - top, "band f0",
                    "interval of the estimate");
  }
  if (!row.change.value) return;
  const double y = plot.y()(*row.change.value);
  plot.svg().line({plot.left(), y}, {plot.right(), y}, "curve s0");
}

}  // namespace

std::vector<Chart> pair_charts(const Model& model) {
  std::vector<Chart> charts;
  for (const VerdictRow& row : model.verdicts) {
    if (row.pairs.empty()) continue;
    Chart chart{.title = fmt::format("{} against {}: {} pair by pair", row.candidate, row.baseline,
                                     row.metric),
                .subtitle = verdict_sentence(row)};
    Range x;
    for (const PairPoint& pair : row.pairs) x.add(static_cast<double>(pair.index));
    Plot plot({.picture = chart.title, .x = "pair, in run order", .y = "change (%)"},
              x.widened(0.04), change_range(row));
    draw_estimate(plot, row);
    const double zero = plot.y()(0);
    plot.svg().line({plot.left(), zero}, {plot.right(), zero}, "zero");
    for (const PairPoint& pair : row.pairs) {
      const Point at = plot.at(static_cast<double>(pair.index), pair.change_pct);
      const std::string title =
          fmt::format("pair {} ({}): {:+.3g} %{}", pair.index, pair.baseline_first ? "AB" : "BA",
                      pair.change_pct, pair.discarded ? ", discarded" : "");
      if (pair.discarded)
        plot.svg().cross(at, 3.5, "oom", title);
      else
        plot.svg().circle(at, 4, pair.baseline_first ? "f0 ring" : "open", title);
    }
    chart.legend = {{"f0", "baseline first"}, {"open", "candidate first"}, {"cross", "discarded"}};
    chart.svg = plot.svg().str();
    charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace assay::report
