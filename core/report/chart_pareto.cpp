// Memory against throughput, with the recipes that no other one beats in both.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/report/bars.h"
#include "core/report/chart.h"

namespace assay::report {
namespace {

constexpr double kRadius = 4.5, kFrontRadius = 5.5;
constexpr double kLine = 13;  // height of a label

struct Spot {
  const Row* row = nullptr;
  const Figure *memory = nullptr, *speed = nullptr;
  double gib = 0, tokens = 0;
  bool front = false;
};

std::vector<Spot> spots_of(const Model& model, size_t memory, size_t speed) {
  std::vector<Spot> spots;
  for (const Row& row : model.rows) {
    const Figure &m = row.figures[memory], &s = row.figures[speed];
    if (!m.value || !s.value) continue;
    spots.push_back({.row = &row,
                     .memory = &m,
                     .speed = &s,
                     .gib = *m.value / model.columns[memory].scale,
                     .tokens = *s.value});
  }
  std::sort(spots.begin(), spots.end(), [](const Spot& a, const Spot& b) {
    return a.gib != b.gib ? a.gib < b.gib : a.tokens > b.tokens;
  });
  std::map<std::string, double> best;  // machines are never compared with each other
  for (Spot& spot : spots) {
    const auto [found, first] = best.emplace(spot.row->machine_id, spot.tokens);
    spot.front = first || spot.tokens > found->second;
    found->second = std::max(found->second, spot.tokens);
  }
  return spots;
}

/// Where no label stands yet, above or below a spot; nothing when all places are taken.
class Labels {
 public:
  explicit Labels(Plot& plot) : plot_(plot) {}

  void occupy(Point at) { boxes_.push_back({at.x - 5, at.y - 5, at.x + 5, at.y + 5}); }

  bool put(Point at, const std::string& text) {
    const double width = text_width(text, kTextSize);
    for (const double dy : {4.0, -8.0, 16.0, -20.0, 28.0}) {
      for (const bool right : {true, false}) {
        const double x = right ? at.x + 9 : at.x - 9 - width;
        const Box box{x, at.y + dy - kLine + 3, x + width, at.y + dy + 3};
        if (!free(box)) continue;
        boxes_.push_back(box);
        plot_.svg().text({x, at.y + dy}, text, "label");
        return true;
      }
    }
    return false;
  }

 private:
  struct Box {
    double left, top, right, bottom;
  };
  bool free(const Box& box) const {
    if (box.left < plot_.left() || box.right > kChartWidth) return false;
    if (box.top < plot_.top() - 6 || box.bottom > plot_.bottom()) return false;
    return std::none_of(boxes_.begin(), boxes_.end(), [&](const Box& other) {
      return box.left < other.right && other.left < box.right && box.top < other.bottom &&
             other.top < box.bottom;
    });
  }

  Plot& plot_;
  std::vector<Box> boxes_;
};

void draw_front(Plot& plot, const std::vector<Spot>& spots) {
  std::map<std::string, std::vector<Point>> steps;
  for (const Spot& spot : spots) {
    if (!spot.front) continue;
    auto& line = steps[spot.row->machine_id];
    const Point at = plot.at(spot.gib, spot.tokens);
    if (!line.empty()) line.push_back({at.x, line.back().y});
    line.push_back(at);
  }
  for (auto& [machine, line] : steps) {
    line.push_back({plot.right(), line.back().y});
    plot.svg().path(line, "front");
  }
}

/// Recipes that ran out of memory stand at the limit they ran into, at the foot of the picture.
size_t draw_limits(Plot& plot, const Model& model, double scale, double largest) {
  std::set<int64_t> limits;
  size_t count = 0;
  for (const RunRow& run : model.runs) {
    if (run.state != "oom" || !run.limit_bytes) continue;
    const double gib = static_cast<double>(*run.limit_bytes) / scale;
    if (gib > largest) continue;
    const Point at = plot.at(gib, plot.y().low);
    if (limits.insert(*run.limit_bytes).second) {
      plot.svg().line({at.x, plot.top()}, {at.x, plot.bottom()}, "limit");
    }
    plot.svg().cross({at.x, plot.bottom() - 7}, 4, "oom", run.slug + ": OOM, " + run.reason);
    ++count;
  }
  return count;
}

Range memory_range(const std::vector<Spot>& spots, const Model& model, double scale) {
  Range range;
  for (const Spot& spot : spots) range.add(spot.gib);
  for (const RunRow& run : model.runs) {
    const double limit = run.limit_bytes ? static_cast<double>(*run.limit_bytes) / scale : 0;
    if (run.state == "oom" && limit < 4 * range.high) range.add(limit);
  }
  Range wide = range.widened(0.12);
  wide.low = std::max(wide.low, 0.0);
  return wide;
}

}  // namespace

std::optional<Chart> pareto_chart(const Model& model) {
  const auto memory = column_index(model, "peak_allocated_bytes");
  const auto speed = column_index(model, "tokens_per_s");
  if (!memory || !speed) return std::nullopt;
  const std::vector<Spot> spots = spots_of(model, *memory, *speed);
  if (spots.size() < 2) return std::nullopt;
  const double scale = model.columns[*memory].scale;
  const Range x = memory_range(spots, model, scale);
  Range y;
  for (const Spot& spot : spots) y.add(spot.tokens);
  Chart chart{.title = "Memory against throughput",
              .subtitle =
                  "the line joins recipes that no other one beats in both; up and left is "
                  "better"};
  Plot plot({.picture = chart.title, .x = heading(model.columns[*memory]), .y = "tokens/s"}, x,
            y.widened(0.1), 280);
  draw_front(plot, spots);
  Labels labels(plot);
  for (const Spot& spot : spots) {
    const Point at = plot.at(spot.gib, spot.tokens);
    labels.occupy(at);
    plot.svg().circle(at, spot.front ? kFrontRadius : kRadius,
                      spot.front ? (spot.row->baseline ? "f1 ring" : "f0 ring")
                                 : (spot.row->baseline ? "f1 ring" : "faded ring"),
                      fmt::format("{}: {} GiB, {} tokens/s", spot.row->label,
                                  with_range(*spot.memory), with_range(*spot.speed)));
  }
  for (const bool front : {true, false}) {
    for (const Spot& spot : spots) {
      if (spot.front != front || (!front && spots.size() > 16 && !spot.row->baseline)) continue;
      labels.put(plot.at(spot.gib, spot.tokens),
                 fitted(row_label(model, *spot.row), 150, kTextSize));
    }
  }
  chart.legend = {{"f0", "on the front"}, {"faded", "beaten in both"}, {"f1", "baseline *"}};
  if (draw_limits(plot, model, scale, x.high) > 0) {
    chart.legend.push_back({"cross", "out of memory at its limit"});
  }
  chart.svg = plot.svg().str();
  return chart;
}

}  // namespace assay::report
