// Interpolation and first passage.
#include "core/evidence/curves.h"

#include <algorithm>
#include <limits>

namespace assay::evidence {
namespace {

using Axis = double (*)(const CurvePoint&);

double tokens_of(const CurvePoint& p) { return static_cast<double>(p.tokens_total); }
double seconds_of(const CurvePoint& p) { return p.elapsed_s; }

std::optional<double> loss_at(std::span<const CurvePoint> curve, Axis axis, double at) {
  const auto after =
      std::find_if(curve.begin(), curve.end(), [&](const CurvePoint& p) { return axis(p) >= at; });
  if (after == curve.end()) return std::nullopt;
  if (axis(*after) == at) return after->loss;
  if (after == curve.begin()) return std::nullopt;
  const CurvePoint& before = *(after - 1);
  const double part = (at - axis(before)) / (axis(*after) - axis(before));
  return before.loss + part * (after->loss - before.loss);
}

std::optional<Aligned> aligned(std::span<const CurvePoint> base,
                               std::span<const CurvePoint> candidate, Axis axis) {
  if (base.empty() || candidate.empty()) return std::nullopt;
  const double at = std::min(axis(base.back()), axis(candidate.back()));
  const auto a = loss_at(base, axis, at), b = loss_at(candidate, axis, at);
  if (!a || !b) return std::nullopt;
  return Aligned{.at = at, .base = *a, .candidate = *b};
}

double median_tokens(std::span<const Curve> curves, double target, int64_t window) {
  std::vector<double> tokens;
  for (const Curve& curve : curves) {
    tokens.push_back(
        tokens_to_target(curve, target, window).value_or(std::numeric_limits<double>::infinity()));
  }
  std::sort(tokens.begin(), tokens.end());
  if (tokens.empty()) return std::numeric_limits<double>::infinity();
  const double low = tokens[(tokens.size() - 1) / 2], high = tokens[tokens.size() / 2];
  return low + (high == low ? 0 : (high - low) / 2);
}

}  // namespace

std::optional<double> loss_at_tokens(std::span<const CurvePoint> curve, double tokens) {
  return loss_at(curve, tokens_of, tokens);
}

std::optional<double> loss_at_time(std::span<const CurvePoint> curve, double elapsed_s) {
  return loss_at(curve, seconds_of, elapsed_s);
}

std::optional<Aligned> at_equal_tokens(std::span<const CurvePoint> base,
                                       std::span<const CurvePoint> candidate) {
  return aligned(base, candidate, tokens_of);
}

std::optional<Aligned> at_equal_time(std::span<const CurvePoint> base,
                                     std::span<const CurvePoint> candidate) {
  return aligned(base, candidate, seconds_of);
}

std::optional<double> tokens_to_target(std::span<const CurvePoint> curve, double target,
                                       int64_t window) {
  double sum = 0;
  const auto width = static_cast<size_t>(std::max<int64_t>(window, 1));
  for (size_t i = 0; i < curve.size(); ++i) {
    sum += curve[i].loss;
    if (i >= width) sum -= curve[i - width].loss;
    if (i + 1 >= width && sum / static_cast<double>(width) <= target) return tokens_of(curve[i]);
  }
  return std::nullopt;
}

std::optional<double> tokens_to_target_ratio(std::span<const Curve> base,
                                             std::span<const Curve> candidate, double target,
                                             int64_t window) {
  const double a = median_tokens(base, target, window);
  const double b = median_tokens(candidate, target, window);
  if (a == std::numeric_limits<double>::infinity()) return std::nullopt;
  return b / a;
}

}  // namespace assay::evidence
