// The matrix of a study as heat maps: every point of the grid has its figure or its reason.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/report/axis.h"
#include "core/report/bars.h"
#include "core/report/chart.h"

namespace assay::report {
namespace {

constexpr int kShades = 7;
constexpr size_t kMostColumns = 12;
constexpr double kTile = 58, kTileHeight = 24, kHead = 15, kMostName = 190;

/// What stands at one point of the grid.
struct Tile {
  const Row* row = nullptr;
  const Hole* hole = nullptr;
};

/// Axes split into those of rows and those of columns; the last ones, which vary fastest, are
/// columns as long as they fit.
struct Grid {
  std::vector<std::string> row_axes{}, column_axes{};
  std::vector<std::string> rows{}, columns{};  ///< joined labels in grid order
  std::map<std::pair<std::string, std::string>, Tile> tiles{};
};

std::string joined(const std::vector<std::string>& labels, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i) {
    text += (i == begin ? "" : " · ") + (labels[i].empty() ? std::string("any") : labels[i]);
  }
  return text;
}

/// Labels of every placed point, recipes and holes.
std::vector<std::pair<const std::vector<std::string>*, Tile>> points_of(
    const Model& model, const std::string& machine) {
  std::vector<std::pair<const std::vector<std::string>*, Tile>> points;
  for (const Row& row : model.rows) {
    if (row.machine_id == machine) points.push_back({&row.labels, {.row = &row}});
  }
  for (const Hole& hole : model.holes) {
    if (!hole.labels.empty()) points.push_back({&hole.labels, {.hole = &hole}});
  }
  return points;
}

/// How many of the last axes are columns.
size_t column_axes(const std::vector<std::set<std::string>>& labels) {
  size_t count = 1, product = labels.back().size();
  while (count + 1 < labels.size()) {
    product *= labels[labels.size() - count - 1].size();
    if (product > kMostColumns / 2) break;
    ++count;
  }
  return count;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

std::optional<Grid> make_grid(const Model& model, const std::string& machine) {
  if (model.axes.empty()) return std::nullopt;
  const auto points = points_of(model, machine);
  std::vector<std::set<std::string>> labels(model.axes.size());
  for (const auto& [own, tile] : points) {
    for (size_t i = 0; i < own->size(); ++i) labels[i].insert((*own)[i]);
  }
  const size_t split = model.axes.size() - column_axes(labels);
  const auto middle = model.axes.begin() + static_cast<std::ptrdiff_t>(split);
  Grid grid{.row_axes = {model.axes.begin(), middle}, .column_axes = {middle, model.axes.end()}};
  for (const auto& [own, tile] : points) {
    const std::string row = joined(*own, 0, split), column = joined(*own, split, own->size());
    add_once(grid.rows, row);
    add_once(grid.columns, column);
    Tile& there = grid.tiles[{row, column}];
    if (there.row == nullptr) there = tile;
  }
  if (grid.tiles.size() < 2) return std::nullopt;
  return grid;
}

std::string state_word(const Row& row) {
  const size_t space = row.state.rfind(' ');
  return space == std::string::npos ? row.state : row.state.substr(space + 1);
}

class Map {
 public:
  Map(const Model& model, const Grid& grid, size_t column, const std::string& title)
      : model_(model),
        grid_(grid),
        column_(column),
        name_width_(name_width(grid)),
        tile_(tile_width(model, grid, column)),
        svg_(std::max(kChartWidth, name_width_ + tile_ * static_cast<double>(grid.columns.size())),
             kHead + 14 + kTileHeight * static_cast<double>(grid.rows.size()) + 4, title) {
    for (const auto& [place, tile] : grid.tiles) {
      if (tile.row && figure(tile)->value) range_.add(*figure(tile)->value);
    }
  }

  bool empty() const { return range_.empty; }

  std::string draw() {
    const double left = left_edge();
    const std::string axes = joined(grid_.row_axes, 0, grid_.row_axes.size());
    svg_.text({left - 8, 11}, fitted(axes, name_width_ - 8, kTextSize), "name", Anchor::end, axes);
    svg_.text({left, 11}, joined(grid_.column_axes, 0, grid_.column_axes.size()), "name");
    for (size_t c = 0; c < grid_.columns.size(); ++c) {
      const double x = left + tile_ * (static_cast<double>(c) + 0.5);
      const std::string shown = fitted(grid_.columns[c], tile_ - 4, kTextSize);
      svg_.text({x, kHead + 10}, shown, "tick", Anchor::middle, grid_.columns[c]);
    }
    for (size_t r = 0; r < grid_.rows.size(); ++r) draw_row(r);
    return svg_.str();
  }

  std::string scale_text() const {
    const Column& column = model_.columns[column_];
    return fmt::format("{} from {} (light) to {} (dark)", heading(column), print_value(range_.low),
                       print_value(range_.high));
  }
  double width() const { return name_width_ + tile_ * static_cast<double>(grid_.columns.size()); }

 private:
  static double name_width(const Grid& grid) {
    double width = text_width(joined(grid.row_axes, 0, grid.row_axes.size()), kTextSize);
    for (const std::string& row : grid.rows) width = std::max(width, text_width(row, kTextSize));
    return std::min(width, kMostName) + 10;
  }
  static double tile_width(const Model& model, const Grid& grid, size_t column) {
    double width = kTile - 8;
    for (const std::string& text : grid.columns) {
      width = std::max(width, std::min(text_width(text, kTextSize), 110.0));
    }
    for (const Row& row : model.rows) {
      width = std::max(width, text_width(row.figures[column].display, kTextSize));
    }
    for (const auto& [place, tile] : grid.tiles) {
      if (tile.hole == nullptr) continue;
      width = std::max(width, std::min(text_width(tile.hole->rule, kTextSize), 80.0));
    }
    const double room = (kChartWidth - name_width(grid)) / static_cast<double>(grid.columns.size());
    return std::max(width + 8, std::min(room, 130.0));
  }
  double left_edge() const { return name_width_; }
  const Figure* figure(const Tile& tile) const { return &tile.row->figures[column_]; }
  std::string print_value(double value) const {
    const double shown = value / model_.columns[column_].scale;
    return print(shown, decimals(shown, {}));
  }

  void draw_row(size_t r) {
    const double y = kHead + 14 + kTileHeight * static_cast<double>(r);
    const std::string& name = grid_.rows[r];
    const std::string shown = fitted(name, name_width_ - 8, kTextSize);
    svg_.text({left_edge() - 8, y + 16}, shown, "label", Anchor::end, shown == name ? "" : name);
    for (size_t c = 0; c < grid_.columns.size(); ++c) {
      const auto found = grid_.tiles.find({name, grid_.columns[c]});
      const Point corner{left_edge() + tile_ * static_cast<double>(c) + 1, y + 1};
      if (found == grid_.tiles.end()) {
        svg_.rect(corner, tile_ - 2, kTileHeight - 2, "none", "no such point in the grid");
      } else {
        draw_tile(corner, found->second);
      }
    }
  }

  void draw_tile(Point corner, const Tile& tile) {
    if (tile.row != nullptr && figure(tile)->value) {
      const std::string& text = figure(tile)->display;
      const int shade = shade_of(*figure(tile)->value);
      box(corner, fmt::format("h{}", shade), text, fmt::format("on t{}", shade > 3 ? 1 : 0),
          fmt::format("{}: {} {}", tile.row->label, with_range(*figure(tile)),
                      heading(model_.columns[column_])));
      return;
    }
    if (tile.hole != nullptr) {
      box(corner, "hole", tile.hole->rule, "hint",
          fmt::format("{}: {}", tile.hole->slug, tile.hole->reason));
      return;
    }
    const Row& row = *tile.row;
    const bool bad = row.footnote > 0;
    box(corner, "hole",
        bad                 ? state_word(row)
        : row.state == "ok" ? "-"
                            : row.state,
        bad ? "bad" : "hint",
        bad ? model_.reasons[static_cast<size_t>(row.footnote) - 1]
            : fmt::format("{}: not measured", row.label));
  }

  void box(Point corner, const std::string& fill, const std::string& text, const std::string& cls,
           const std::string& title) {
    svg_.rect(corner, tile_ - 2, kTileHeight - 2, fill, title);
    svg_.text({corner.x + tile_ / 2 - 1, corner.y + 15}, fitted(text, tile_ - 6, kTextSize), cls,
              Anchor::middle);
  }

  int shade_of(double value) const {
    if (range_.high <= range_.low) return kShades / 2;
    const double share = (value - range_.low) / (range_.high - range_.low);
    return std::min(static_cast<int>(share * kShades), kShades - 1);
  }

  const Model& model_;
  const Grid& grid_;
  const size_t column_;
  const double name_width_, tile_;
  Range range_{};
  Svg svg_;
};

/// Each reason once, with the points that have it.
std::vector<std::string> reasons_of(const Model& model) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const Hole& hole : model.holes) {
    const std::string key = hole.rule + ": " + hole.reason;
    auto found = std::find_if(by_reason.begin(), by_reason.end(),
                              [&](const auto& entry) { return entry.first == key; });
    if (found == by_reason.end()) found = by_reason.insert(by_reason.end(), {key, {}});
    found->second.push_back(hole.slug);
  }
  constexpr size_t kMostReasons = 40, kMostSlugs = 6;
  std::vector<std::string> lines;
  for (const auto& [reason, slugs] : by_reason) {
    if (lines.size() == kMostReasons) {
      lines.push_back(fmt::format("{} more reasons: assay plan", by_reason.size() - kMostReasons));
      break;
    }
    std::string line = reason + " (";
    for (size_t i = 0; i < std::min(slugs.size(), kMostSlugs); ++i) {
      line += (i == 0 ? "" : ", ") + slugs[i];
    }
    if (slugs.size() > kMostSlugs) line += fmt::format(" and {} more", slugs.size() - kMostSlugs);
    lines.push_back(line + ")");
  }
  return lines;
}

}  // namespace

std::vector<Chart> matrix_charts(const Model& model) {
  std::vector<Chart> charts;
  std::vector<std::string> machines;
  for (const Row& row : model.rows) add_once(machines, row.machine_id);
  for (const std::string& machine : machines) {
    const auto grid = make_grid(model, machine);
    if (!grid) continue;
    for (const char* name : {"tokens_per_s", "peak_allocated_bytes", "final_val_loss"}) {
      const auto column = column_index(model, name);
      if (!column) continue;
      Chart chart{.title = fmt::format("Matrix: {}", model.columns[*column].title)};
      if (machines.size() > 1) chart.title += " @" + machine.substr(0, 6);
      Map map(model, *grid, *column, chart.title);
      if (map.empty()) continue;
      chart.subtitle = map.scale_text();
      chart.svg = map.draw();
      chart.width = map.width();
      if (charts.empty()) chart.notes = reasons_of(model);
      charts.push_back(std::move(chart));
    }
  }
  return charts;
}

}  // namespace assay::report
