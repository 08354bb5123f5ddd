// Global gradient norm and clipping over the parts of a model that a rank holds.
#pragma once

#include "assay/api.h"
#include "core/train/assemble.h"

namespace assay::train {

/// Of the ranks that hold copies of a stored box, true on the one that comes first.
ASSAY_API bool holds_first_copy(const Assembly& assembly, const Parameter& parameter);

/// Sums gradients that are parts of a sum over a group (norms under sequence parallelism), one
/// all_reduce per group in the precision's reduce dtype.
ASSAY_API void sum_partial_gradients(Assembly& assembly);

/// Hands each shard its reduced gradient.
ASSAY_API void take_gradients(Assembly& assembly);

/// sqrt of the sum of squares over all parameters, each element counted once whatever the layout;
/// fp64, the same on every rank.
ASSAY_API double gradient_norm(Assembly& assembly);

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)).
ASSAY_API void clip_gradients(Assembly& assembly, double norm, double max_norm);

}  // namespace assay::train
