// Curves: the loss of each recipe over tokens or seconds, its band over seeds, and what to draw.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/model.h"
#include "core/report/svg.h"

namespace assay::report {

enum class LossKind { training, validation };
enum class Over { tokens, seconds };

/// The loss of one recipe. Seeds are the replicates: repeats of one cell are averaged first.
struct RecipeCurve {
  const Row* row = nullptr;
  std::vector<std::vector<Point>> seeds{};  ///< one per cell that ended well
  std::vector<Point> mean{};                ///< over seeds, by index
};

/// Recipes with at least two points, in row order; points that are no number are left out.
std::vector<RecipeCurve> loss_curves(const Model& model, LossKind kind, Over over);

/// Recipes whose mean curves cannot be told apart on paper are drawn once.
struct CurveGroup {
  std::vector<const RecipeCurve*> members{};  ///< the first one is drawn
  bool baseline = false;

  std::string label() const;  ///< "adamw_eager_none and 3 more"
};

/// Groups of curves that agree within `tolerance` (on y) at every point; the baseline's first, then
/// by final loss.
std::vector<CurveGroup> group_curves(const std::vector<RecipeCurve>& curves, double tolerance);

/// At most `most` points: of each bucket its lowest and its highest, so that no peak is lost.
std::vector<Point> thinned(const std::vector<Point>& points, size_t most);

/// Running median over `window` points (an odd number), fewer at the ends; x stays.
std::vector<Point> running_median(const std::vector<Point>& points, size_t window);

/// y of a curve at x, linear between points; nothing outside.
std::optional<double> value_at(const std::vector<Point>& curve, double x);

/// Candidate minus baseline at the candidate's x, where both have been.
std::vector<Point> difference(const std::vector<Point>& candidate,
                              const std::vector<Point>& baseline);

}  // namespace assay::report
