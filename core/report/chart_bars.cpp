// Throughput and final loss: one figure per recipe with its range.
#include <fmt/format.h>

#include "core/report/bars.h"
#include "core/report/chart.h"

namespace assay::report {
namespace {

constexpr double kCap = 3;  // half the height of a whisker's ends

std::string state_text(const Row& row) {
  return row.footnote == 0 ? row.state : fmt::format("{} {})", row.state, row.footnote);
}

/// A name that holds for one run and for several.
std::string runs_text(size_t runs) { return runs == 1 ? "1 run" : fmt::format("{} runs", runs); }

struct Look {
  bool bars = false;           ///< bars from zero, else dots
  bool largest_first = false;  ///< best first
  std::string title{}, subtitle{};
};

void draw_whisker(BarChart& chart, size_t row, const Figure& figure, double scale) {
  if (!figure.low || *figure.low == *figure.high) return;
  const double low = chart.x()(*figure.low / scale), high = chart.x()(*figure.high / scale);
  const double y = chart.middle(row);
  chart.svg().line({low, y}, {high, y}, "whisker");
  chart.svg().line({low, y - kCap}, {low, y + kCap}, "whisker");
  chart.svg().line({high, y - kCap}, {high, y + kCap}, "whisker");
}

void draw_row(BarChart& chart, size_t place, const Row& row, const Figure& figure,
              const Column& column, const Look& look) {
  const std::string title = fmt::format("{}: {} {}, {}", row.label, with_range(figure),
                                        heading(column), runs_text(figure.runs.size()));
  const double x = chart.x()(*figure.value / column.scale), y = chart.middle(place);
  const char* fill = row.baseline ? "f1" : "f0";
  if (look.bars) {
    chart.svg().rect({chart.x().from, y - BarChart::kBar / 2}, x - chart.x().from, BarChart::kBar,
                     fill, title);
  } else {
    chart.svg().circle({x, y}, 4, fill, title);
  }
  draw_whisker(chart, place, figure, column.scale);
}

Range range_of(const BarRows& rows, size_t at, const Column& column, const Look& look) {
  Range range;
  if (look.bars) range.add(0);
  for (const Row* row : rows.rows) {
    const Figure& figure = row->figures[at];
    range.add(*figure.value / column.scale);
    if (figure.low) range.add(*figure.low / column.scale);
    if (figure.high) range.add(*figure.high / column.scale);
  }
  return look.bars && range.high > 0 ? range : range.widened(0.06);
}

std::optional<Chart> figure_chart(const Model& model, const char* name, const Look& look) {
  const auto at = column_index(model, name);
  if (!at) return std::nullopt;
  const Column& column = model.columns[*at];
  const BarRows rows = bar_rows(model, *at, look.largest_first);
  if (rows.rows.empty()) return std::nullopt;
  std::vector<std::string> names, values;
  bool several = false;
  for (const Row* row : rows.rows) {
    names.push_back(row_label(model, *row));
    values.push_back(row->figures[*at].display);
    several = several || row->figures[*at].runs.size() > 1;
  }
  for (const Row* row : rows.failed) {
    names.push_back(row_label(model, *row));
    values.emplace_back();
  }
  Chart chart{.title = look.title, .subtitle = look.subtitle};
  BarChart bars({.picture = look.title, .axis = heading(column)}, names, values,
                range_of(rows, *at, column, look));
  size_t place = 0;
  for (const Row* row : rows.rows) {
    draw_row(bars, place++, *row, row->figures[*at], column, look);
  }
  for (const Row* row : rows.failed) {
    const size_t reason = static_cast<size_t>(row->footnote);
    bars.word(place++, state_text(*row), reason > 0 ? model.reasons[reason - 1] : "");
  }
  chart.subtitle += several ? fmt::format("; {} over runs, lines: range over runs",
                                          statistic_name(column.statistic))
                            : "; one run each, so no range";
  if (rows.hidden > 0) {
    chart.notes.push_back(fmt::format("{} more recipes are in the table", rows.hidden));
  }
  chart.svg = bars.svg().str();
  return chart;
}

}  // namespace

std::optional<Chart> throughput_chart(const Model& model) {
  return figure_chart(model, "tokens_per_s",
                      {.bars = true,
                       .largest_first = true,
                       .title = "Throughput by recipe",
                       .subtitle = "higher is faster"});
}

std::optional<Chart> final_loss_chart(const Model& model) {
  return figure_chart(model, "final_val_loss",
                      {.title = "Final validation loss by recipe", .subtitle = "lower is better"});
}

}  // namespace assay::report
