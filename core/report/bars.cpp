// Layout of rows of bars.
#include "core/report/bars.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace assay::report {
namespace {

constexpr double kMostName = 0.42 * kChartWidth;
constexpr double kGap = 6, kBelow = 36;
constexpr int kTicks = 3;

double widest(const std::vector<std::string>& texts) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, text_width(text, kTextSize));
  return width;
}

double height_of(size_t rows) {
  return BarChart::kFirst + BarChart::kRow * static_cast<double>(rows) + kBelow;
}

}  // namespace

std::optional<size_t> column_index(const Model& model, std::string_view name) {
  const auto found = std::find_if(model.columns.begin(), model.columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  if (found == model.columns.end()) return std::nullopt;
  return static_cast<size_t>(found - model.columns.begin());
}

bool several_machines(const Model& model) {
  return std::any_of(model.rows.begin(), model.rows.end(), [&](const Row& row) {
    return row.machine_id != model.rows.front().machine_id;
  });
}

std::string row_label(const Model& model, const Row& row) {
  std::string label = row.label;
  if (several_machines(model)) label += " @" + row.machine_id.substr(0, 6);
  return row.baseline ? label + " *" : label;
}

BarRows bar_rows(const Model& model, size_t column, bool largest_first) {
  BarRows result;
  for (const Row& row : model.rows) {
    if (row.figures[column].value)
      result.rows.push_back(&row);
    else if (row.figures[column].state == FigureState::failed)
      result.failed.push_back(&row);
  }
  const auto value = [&](const Row* row) { return *row->figures[column].value; };
  std::stable_sort(result.rows.begin(), result.rows.end(), [&](const Row* a, const Row* b) {
    return largest_first ? value(a) > value(b) : value(a) < value(b);
  });
  if (result.rows.size() > kMostBars) {
    result.hidden = result.rows.size() - kMostBars;
    const auto hidden = result.rows.begin() + kMostBars;
    const auto baseline =
        std::find_if(hidden, result.rows.end(), [](const Row* row) { return row->baseline; });
    if (baseline != result.rows.end()) result.rows[kMostBars - 1] = *baseline;
    result.rows.resize(kMostBars);
  }
  const size_t room = kMostBars + 4 - result.rows.size();
  if (result.failed.size() > room) {
    result.hidden += result.failed.size() - room;
    result.failed.resize(room);
  }
  return result;
}

BarChart::BarChart(const Titles& titles, const std::vector<std::string>& names,
                   const std::vector<std::string>& values, const Range& range)
    : rows_(names.size()), svg_(kChartWidth, height_of(names.size()), titles.picture) {
  const double name_width = std::min(widest(names), kMostName);
  const double left = std::ceil(1.05 * name_width) + kGap;
  const double right = kChartWidth - std::ceil(1.1 * widest(values)) - 2 * kGap;
  x_ = {.low = range.low, .high = range.high, .from = left, .to = std::max(right, left + 60)};
  const auto ticks = round_ticks(range.low, range.high, kTicks);
  const auto texts = tick_texts(ticks);
  for (size_t i = 0; i < ticks.size(); ++i) {
    const double x = x_(ticks[i]);
    svg_.line({x, top()}, {x, bottom()}, "grid");
    svg_.text({x, bottom() + 14}, texts[i], "tick", Anchor::middle);
  }
  svg_.line({x_.from, top()}, {x_.from, bottom()}, "axis");
  svg_.text({x_.to, bottom() + 30}, titles.axis, "name", Anchor::end);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string shown = fitted(names[i], name_width + 0.5, kTextSize);
    svg_.text({left - kGap, middle(i) + 4}, shown, "label", Anchor::end,
              shown == names[i] ? "" : names[i]);
    svg_.text({kChartWidth, middle(i) + 4}, values[i], "value", Anchor::end);
  }
}

void BarChart::word(size_t row, std::string_view text, std::string_view title) {
  svg_.text({x_.from + kGap, middle(row) + 4}, text, "bad", Anchor::start, title);
}

}  // namespace assay::report
