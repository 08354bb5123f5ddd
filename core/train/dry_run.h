// Dry run: one rank of any layout takes one step on the meta device, without peers and memory.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "assay/api.h"

namespace assay::train {

/// Runs all recipe code unchanged on shapes: comm/fake answers for the other ranks, tensors have
/// sizes and no values.
///
/// `config`: resolved, with comm fake. Gives
/// {"rank", "world", "build_s", "step_s", "parameters", "parameters_on_rank",
///  "bytes": {"parameters", "gradients", "optimizer", "unsharded", "activations"},
///  "collectives": [{"grp", "op", "dtype", "phase", "count", "payload_bytes", "wire_bytes"}],
///  "counters": {...}}; bytes are of this rank, of one step.
/// Throws what the recipe throws.
ASSAY_API nlohmann::json dry_run(const nlohmann::json& config, int rank);

}  // namespace assay::train
