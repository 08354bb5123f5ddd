// Losses of two runs step by step: equal in bits (T0), or within the envelope of honest reordering
// (T1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/evidence/verdict.h"

namespace assay::evidence {

/// What one step left behind. Bits are the IEEE-754 pattern of a float64.
struct StepBits {
  int64_t step = 0;
  std::optional<double> loss{}, grad_norm{};
  std::optional<int64_t> loss_bits{}, grad_norm_bits{};
};

/// A run as these tests see it. Checksums: of the parameters at the end, by rank, 48 bits each.
struct BitSeries {
  std::vector<StepBits> steps{};  ///< all steps that ran, evaluations included, in order
  std::vector<double> checksums{};
};

/// T0 (bits.v1): loss and gradient norm of all steps that ran, and the checksums, equal in bits.
/// PARITY, NO_PARITY with the first difference (step, both patterns, ulp distance) as reason, or
/// NOT_SHOWN when a run has no bits or the lengths differ without a difference. n_used: steps.
Verdict judge_bits(const BitSeries& base, const BitSeries& candidate);

inline constexpr int64_t kEnvelopeRuns = 8;    ///< K honest perturbations of the baseline
inline constexpr int64_t kEnvelopeSteps = 20;  ///< first steps that are compared

/// T1 (envelope.v1), steps 1..20. With E_k = running maximum of (max - min) over the baseline and
/// its K perturbations: PARITY iff |candidate_k - base_k| <= 2 E_k + 8 epsilon |base_k| for loss
/// and gradient norm at every k; NO_PARITY names the first step outside; NOT_SHOWN with fewer than
/// K perturbations or steps. `epsilon` of the accumulation type.
Verdict judge_envelope(const BitSeries& base, std::span<const BitSeries> perturbed,
                       const BitSeries& candidate, double epsilon);

}  // namespace assay::evidence
