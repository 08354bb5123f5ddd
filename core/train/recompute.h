// Recompute: drops what a block saves for backward and computes it again when it is asked for
// (activation checkpointing, arXiv:1604.06174; selective as in arXiv:2205.05198).
#pragma once

#include <functional>
#include <memory>

#include "assay/memory.h"
#include "assay/model.h"
#include "assay/rank_context.h"

namespace assay::train {

/// Wraps the blocks for which `policy` says recompute; the others pass through. Gradients have the
/// bits of the plain run. Counters: "recompute.blocks" (regions run), "recompute.kept" and
/// "recompute.outputs" (operator outputs kept, seen; selective policies).
std::unique_ptr<BlockRunner> recompute_region(std::unique_ptr<BlockRunner> next,
                                              std::shared_ptr<const MemoryPolicy> policy,
                                              const RankContext& context);

}  // namespace assay::train
