// From samples of runs to curves of recipes.
#include "core/report/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace assay::report {
namespace {

constexpr size_t kFewestPoints = 2;

std::vector<Point> points_of(const RunRow& run, LossKind kind, Over over) {
  std::vector<Point> points;
  for (const StepSample& step : run.steps) {
    const bool validation = step.kind == "eval";
    if (validation != (kind == LossKind::validation) || step.kind == "checkpoint") continue;
    if (!step.loss) continue;
    const double x = over == Over::tokens ? static_cast<double>(step.tokens_total) : step.elapsed_s;
    points.push_back({x, *step.loss});
  }
  return points;
}

/// The mean of curves by index, as far as all of them go.
std::vector<Point> mean_of(const std::vector<std::vector<Point>>& curves) {
  if (curves.size() == 1) return curves.front();
  size_t length = curves.empty() ? 0 : curves.front().size();
  for (const auto& curve : curves) length = std::min(length, curve.size());
  std::vector<Point> mean(length);
  const auto n = static_cast<double>(curves.size());
  for (size_t k = 0; k < length; ++k) {
    for (const auto& curve : curves) {
      mean[k].x += curve[k].x / n;
      mean[k].y += curve[k].y / n;
    }
  }
  return mean;
}

RecipeCurve curve_of(const Row& row, const std::map<int64_t, const RunRow*>& runs, LossKind kind,
                     Over over) {
  std::map<std::string, std::vector<std::vector<Point>>> by_cell;
  for (const int64_t id : row.runs) {
    const RunRow& run = *runs.at(id);
    if (run.state != "ok") continue;
    auto points = points_of(run, kind, over);
    if (points.size() >= kFewestPoints) by_cell[run.cell_id].push_back(std::move(points));
  }
  RecipeCurve curve{.row = &row};
  for (const auto& [cell, own] : by_cell) curve.seeds.push_back(mean_of(own));
  curve.mean = mean_of(curve.seeds);
  return curve;
}

bool agree(const std::vector<Point>& a, const std::vector<Point>& b, double tolerance) {
  if (a.size() != b.size()) return false;
  const double span = std::max(std::abs(a.back().x), 1e-300);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i].y - b[i].y) > tolerance) return false;
    if (std::abs(a[i].x - b[i].x) > 0.005 * span) return false;
  }
  return true;
}

double final_loss(const CurveGroup& group) { return group.members.front()->mean.back().y; }

}  // namespace

std::vector<RecipeCurve> loss_curves(const Model& model, LossKind kind, Over over) {
  std::map<int64_t, const RunRow*> runs;
  for (const RunRow& run : model.runs) runs[run.run_id] = &run;
  std::vector<RecipeCurve> curves;
  for (const Row& row : model.rows) {
    RecipeCurve curve = curve_of(row, runs, kind, over);
    if (curve.mean.size() >= kFewestPoints) curves.push_back(std::move(curve));
  }
  return curves;
}

std::string CurveGroup::label() const {
  const std::string name = members.front()->row->label;
  if (members.size() == 1) return name;
  return fmt::format("{} and {} more, equal on this scale", name, members.size() - 1);
}

std::vector<CurveGroup> group_curves(const std::vector<RecipeCurve>& curves, double tolerance) {
  std::vector<CurveGroup> groups;
  for (const RecipeCurve& curve : curves) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const CurveGroup& group) {
      return agree(group.members.front()->mean, curve.mean, tolerance);
    });
    CurveGroup& group = found == groups.end() ? groups.emplace_back() : *found;
    group.members.push_back(&curve);
    group.baseline = group.baseline || curve.row->baseline;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const CurveGroup& a, const CurveGroup& b) {
    if (a.baseline != b.baseline) return a.baseline;
    return final_loss(a) < final_loss(b);
  });
  return groups;
}

std::vector<Point> thinned(const std::vector<Point>& points, size_t most) {
  if (points.size() <= most || most < 4) return points;
  std::vector<Point> kept = {points.front()};
  const size_t buckets = (most - 2) / 2, inner = points.size() - 2;
  for (size_t b = 0; b < buckets; ++b) {
    const auto begin = points.begin() + 1 + static_cast<std::ptrdiff_t>(b * inner / buckets);
    const auto end = points.begin() + 1 + static_cast<std::ptrdiff_t>((b + 1) * inner / buckets);
    if (begin == end) continue;
    auto [low, high] =
        std::minmax_element(begin, end, [](const Point& p, const Point& q) { return p.y < q.y; });
    if (low > high) std::swap(low, high);
    kept.push_back(*low);
    if (low != high) kept.push_back(*high);
  }
  kept.push_back(points.back());
  return kept;
}

std::vector<Point> running_median(const std::vector<Point>& points, size_t window) {
  std::vector<Point> smooth = points;
  for (size_t k = 0; k < points.size(); ++k) {
    const size_t half = std::min({window / 2, k, points.size() - 1 - k});
    std::vector<double> near;
    for (size_t i = k - half; i <= k + half; ++i) near.push_back(points[i].y);
    std::nth_element(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(half), near.end());
    smooth[k].y = near[half];
  }
  return smooth;
}

std::optional<double> value_at(const std::vector<Point>& curve, double x) {
  if (curve.empty() || x < curve.front().x || x > curve.back().x) return std::nullopt;
  const auto above = std::lower_bound(curve.begin(), curve.end(), x,
                                      [](const Point& p, double at) { return p.x < at; });
  if (above == curve.begin() || above->x == x) return above->y;
  const Point &p = *std::prev(above), &q = *above;
  return p.y + (x - p.x) / (q.x - p.x) * (q.y - p.y);
}

std::vector<Point> difference(const std::vector<Point>& candidate,
                              const std::vector<Point>& baseline) {
  std::vector<Point> points;
  for (const Point& p : candidate) {
    const auto base = value_at(baseline, p.x);
    if (base) points.push_back({p.x, p.y - *base});
  }
  return points;
}

}  // namespace assay::report
