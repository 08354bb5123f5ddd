// LrSchedule: the factor on optim.lr at each step (recipes 5.8; wsd: arXiv:2404.06395).
#pragma once

#include <cstdint>
#include <string>

#include "assay/api.h"

namespace assay::train {

struct ASSAY_API LrSchedule {
  std::string name = "cosine";         ///< constant, linear, cosine, wsd
  std::string decay_shape = "linear";  ///< of wsd: linear, sqrt, cosine
  int64_t total = 1;                   ///< steps
  int64_t warmup = 0;                  ///< steps of linear warm-up
  double decay_ratio = 0.2;            ///< of wsd: share of the steps that decays
  double min_factor = 0.0;

  /// step counts from 0. Warm-up: (step + 1) / warmup; then 1; then the decay, q in (0, 1]:
  /// min + (1 - min) * {1 - q, 1 - sqrt q, (1 + cos pi q) / 2}.
  double factor(int64_t step) const;
};

}  // namespace assay::train
