// Loss curves: over tokens, over seconds, and as a difference to the baseline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/report/axis.h"
#include "core/report/band.h"
#include "core/report/chart.h"
#include "core/report/curves.h"

namespace assay::report {
namespace {

constexpr size_t kColours = 8;           // groups drawn in colour; the others are grey
constexpr size_t kDashes = 4;            // curves of one colour
constexpr size_t kSeedsForBand = 5;      // fewer: their curves instead of a band
constexpr size_t kMostPoints = 2000;     // of one curve
constexpr size_t kPointBudget = 40'000;  // of one picture
constexpr size_t kBandPoints = 200;
constexpr size_t kMostDots = 40;
constexpr size_t kFewestSmoothed = 5, kMostSmoothed = 101;
constexpr size_t kMostRaw = 3;        // so many curves are drawn with their noise behind them
constexpr double kSameShare = 0.003;  // of the picture's height: thinner than a line
constexpr double kStart = 0.1;        // share of a run whose losses may lie above the frame

size_t points_each(size_t curves) {
  return std::clamp(kPointBudget / std::max<size_t>(curves, 1), size_t{24}, kMostPoints);
}

/// y of the picture: the start of training may be cut off, the rest may not.
Range loss_range(const std::vector<RecipeCurve>& curves) {
  Range range;
  for (const RecipeCurve& curve : curves) {
    for (const auto& seed : curve.seeds) {
      const auto begin = static_cast<size_t>(kStart * static_cast<double>(seed.size()));
      for (size_t k = begin; k < seed.size(); ++k) range.add(seed[k].y);
    }
  }
  return range.widened(0.05);
}

/// Curves that are one over tokens have one colour in every picture, and their own dashes.
using Looks = std::map<const Row*, std::string>;

/// The baseline has colour 1 here as in the bars.
size_t colour_of(const std::vector<CurveGroup>& groups, size_t group) {
  return groups.front().baseline && group < 2 ? 1 - group : group;
}

Looks looks_of(const std::vector<CurveGroup>& groups) {
  Looks looks;
  for (size_t g = 0; g < std::min(groups.size(), kColours); ++g) {
    const size_t colour = colour_of(groups, g);
    for (size_t m = 0; m < std::min(groups[g].members.size(), kDashes); ++m) {
      looks[groups[g].members[m]->row] =
          fmt::format("s{}{}", colour, m == 0 ? std::string() : fmt::format(" d{}", m));
    }
  }
  return looks;
}

struct Picture {
  Plot plot;
  Magnitude x{};

  std::vector<Point> placed(const std::vector<Point>& points) const {
    std::vector<Point> places;
    places.reserve(points.size());
    for (const Point& p : points) places.push_back(plot.at(p.x / x.factor, p.y));
    return places;
  }
};

Picture make_picture(const std::string& title, Over over, const std::string& y_title,
                     double longest, const Range& y) {
  const Magnitude magnitude = magnitude_of(longest);
  const std::string unit = over == Over::tokens ? "tokens" : "seconds of training";
  const std::string x_title =
      magnitude.word.empty() ? unit : fmt::format("{} ({})", unit, magnitude.word);
  return {Plot({.picture = title, .x = x_title, .y = y_title},
               {.low = 0, .high = longest / magnitude.factor, .empty = false}, y),
          magnitude};
}

std::string members_text(const CurveGroup& group) {
  std::string text;
  for (const RecipeCurve* curve : group.members) {
    text += (text.empty() ? "" : ", ") + curve->row->label;
  }
  return text;
}

/// Every k-th point of each seed, so that the bootstrap stays fast.
std::vector<std::vector<Point>> strided(const std::vector<std::vector<Point>>& seeds) {
  const size_t stride = seeds.front().size() / kBandPoints + 1;
  std::vector<std::vector<Point>> few;
  for (const auto& seed : seeds) {
    auto& kept = few.emplace_back();
    for (size_t k = 0; k < seed.size(); k += stride) kept.push_back(seed[k]);
  }
  return few;
}

/// The band over seeds, or their curves where they are too few for one.
void draw_spread(Picture& picture, const RecipeCurve& curve, const std::string& look, size_t most) {
  if (curve.seeds.size() < 2) return;
  Svg& svg = picture.plot.svg();
  if (curve.seeds.size() < kSeedsForBand) {
    for (const auto& seed : curve.seeds) {
      svg.path(picture.placed(thinned(seed, most)), "thin " + look);
    }
    return;
  }
  const auto seeds = strided(curve.seeds);
  const std::vector<double> half = simultaneous_band(seeds);
  std::vector<Point> upper, lower;
  for (size_t k = 0; k < half.size(); ++k) {
    Point mean;
    for (const auto& seed : seeds) {
      mean.x += seed[k].x / static_cast<double>(seeds.size());
      mean.y += seed[k].y / static_cast<double>(seeds.size());
    }
    upper.push_back({mean.x, mean.y + half[k]});
    lower.push_back({mean.x, mean.y - half[k]});
  }
  svg.area(picture.placed(upper), picture.placed(lower), "band f" + look.substr(1, 1));
}

std::string spread_text(const std::vector<CurveGroup>& groups) {
  size_t fewest = SIZE_MAX, most = 0;
  for (const CurveGroup& group : groups) {
    fewest = std::min(fewest, group.members.front()->seeds.size());
    most = std::max(most, group.members.front()->seeds.size());
  }
  if (most < 2) return "one seed each, so no band";
  const std::string count =
      fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
  return most < kSeedsForBand
             ? fmt::format("mean and the curves of {} seeds", count)
             : fmt::format("mean with the 95 % simultaneous band over {} seeds", count);
}

std::string legend_text(const CurveGroup& group) {
  return group.label() + (group.baseline ? " (baseline *)" : "");
}

/// Losses of single steps are noisy: a running median over a twelfth of the run is what is drawn.
size_t window_of(LossKind kind, const std::vector<RecipeCurve>& curves) {
  if (kind == LossKind::validation) return 1;
  const size_t twelfth = curves.front().mean.size() / 12;
  return std::clamp(twelfth, kFewestSmoothed, kMostSmoothed) | 1;
}

/// Grey curves first, coloured ones above them, the baseline on top.
void draw_groups(Picture& picture, const std::vector<CurveGroup>& groups, const Looks& looks,
                 size_t window, Chart& chart) {
  Svg& svg = picture.plot.svg();
  const size_t most = points_each(groups.size());
  const Plot& plot = picture.plot;
  size_t grey = 0;
  std::vector<LegendItem> legend;
  svg.open_clip({plot.left(), plot.top()}, plot.right() - plot.left() + 6,
                plot.bottom() - plot.top());
  for (size_t g = groups.size(); g-- > 0;) {
    const RecipeCurve& curve = *groups[g].members.front();
    const auto look = looks.find(curve.row);
    if (g >= kColours || look == looks.end()) {
      svg.path(picture.placed(thinned(running_median(curve.mean, window), most)), "rest",
               members_text(groups[g]));
      ++grey;
      continue;
    }
    draw_spread(picture, curve, look->second, most);
    if (window > 1 && groups.size() <= kMostRaw) {
      svg.path(picture.placed(thinned(curve.mean, most)), "thin " + look->second);
    }
    const auto line = picture.placed(thinned(running_median(curve.mean, window), most));
    svg.path(line, "curve " + look->second, members_text(groups[g]));
    legend.insert(legend.begin(), {look->second, legend_text(groups[g])});
    if (window > 1 || line.size() > kMostDots) continue;
    for (const Point& p : line) svg.circle(p, 2.5, "f" + look->second.substr(1, 1));
  }
  svg.close_clip();
  chart.legend = std::move(legend);
  if (grey > 0) chart.legend.push_back({"rest", fmt::format("{} other curves", grey)});
}

void note_window(Chart& chart, size_t window) {
  if (window > 1) chart.notes.push_back(fmt::format("lines: running median of {} steps", window));
}

double longest_of(const std::vector<RecipeCurve>& curves) {
  double longest = 0;
  for (const RecipeCurve& curve : curves) longest = std::max(longest, curve.mean.back().x);
  return longest;
}

const char* name_of(LossKind kind) {
  return kind == LossKind::training ? "Training loss" : "Validation loss";
}

std::vector<CurveGroup> groups_of(const std::vector<RecipeCurve>& curves, const Range& y) {
  return group_curves(curves, kSameShare * (y.high - y.low));
}

Chart curve_chart(const std::vector<RecipeCurve>& curves, const Looks& looks, LossKind kind,
                  Over over) {
  const Range y = loss_range(curves);
  const auto groups = groups_of(curves, y);
  Chart chart{.title = fmt::format("{} over {}", name_of(kind),
                                   over == Over::tokens ? "tokens" : "training time"),
              .subtitle = fmt::format("{} recipes; {}", curves.size(), spread_text(groups))};
  Picture picture = make_picture(chart.title, over, fmt::format("{} (nat)", name_of(kind)),
                                 longest_of(curves), y);
  const size_t window = window_of(kind, curves);
  draw_groups(picture, groups, looks, window, chart);
  note_window(chart, window);
  const bool cut = std::any_of(curves.begin(), curves.end(), [&](const RecipeCurve& curve) {
    return curve.mean.front().y > y.high;
  });
  if (cut) chart.notes.emplace_back("the first steps lie above the frame");
  chart.svg = picture.plot.svg().str();
  return chart;
}

std::optional<Chart> difference_chart(const std::vector<RecipeCurve>& curves, const Looks& looks,
                                      LossKind kind) {
  const auto base = std::find_if(curves.begin(), curves.end(),
                                 [](const RecipeCurve& curve) { return curve.row->baseline; });
  if (base == curves.end() || curves.size() < 2) return std::nullopt;
  std::vector<RecipeCurve> gaps;
  for (const RecipeCurve& curve : curves) {
    if (&curve == &*base) continue;
    RecipeCurve gap{.row = curve.row, .mean = difference(curve.mean, base->mean)};
    if (gap.mean.size() < 2) continue;
    gap.seeds = {gap.mean};
    gaps.push_back(std::move(gap));
  }
  if (gaps.empty()) return std::nullopt;
  Range y = loss_range(gaps);
  y.add(0);
  const auto groups = groups_of(gaps, y);
  Chart chart{.title = fmt::format("{} minus that of {}", name_of(kind), base->row->label),
              .subtitle = "at equal tokens; below zero is lower than the baseline"};
  Picture picture =
      make_picture(chart.title, Over::tokens, "difference (nat)", longest_of(gaps), y);
  const double zero = picture.plot.y()(0);
  picture.plot.svg().line({picture.plot.left(), zero}, {picture.plot.right(), zero}, "zero");
  const size_t window = window_of(kind, curves);
  draw_groups(picture, groups, looks, window, chart);
  note_window(chart, window);
  chart.svg = picture.plot.svg().str();
  return chart;
}

}  // namespace

std::vector<Chart> loss_charts(const Model& model) {
  std::vector<Chart> charts;
  LossKind kind = LossKind::validation;
  auto curves = loss_curves(model, kind, Over::tokens);
  if (curves.empty()) curves = loss_curves(model, kind = LossKind::training, Over::tokens);
  if (curves.empty()) return charts;
  const Looks looks = looks_of(groups_of(curves, loss_range(curves)));
  charts.push_back(curve_chart(curves, looks, kind, Over::tokens));
  const auto timed = loss_curves(model, kind, Over::seconds);
  charts.push_back(curve_chart(timed, looks, kind, Over::seconds));
  if (auto gap = difference_chart(curves, looks, kind)) charts.push_back(std::move(*gap));
  return charts;
}

}  // namespace assay::report
