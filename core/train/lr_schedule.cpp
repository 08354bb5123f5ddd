// The three phases of lr_schedule.h.
#include "core/train/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace assay::train {
namespace {

double decay(const std::string& shape, double q) {
  if (shape == "sqrt") return 1 - std::sqrt(q);
  if (shape == "cosine") return 0.5 * (1 + std::cos(std::numbers::pi * q));
  return 1 - q;
}

}  // namespace

double LrSchedule::factor(int64_t step) const {
  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (name == "constant") return 1.0;
  const bool wsd = name == "wsd";
  const int64_t wanted = wsd ? std::llround(static_cast<double>(total) * decay_ratio) : total;
  const int64_t length = std::min(wanted, total - warmup);
  const int64_t stable = total + 1 - warmup - length;
  if (step < warmup + stable) return 1.0;
  const double q = static_cast<double>(step + 1 - warmup - stable) / static_cast<double>(length);
  return min_factor + (1 - min_factor) * decay(wsd ? decay_shape : name, q);
}

}  // namespace assay::train
