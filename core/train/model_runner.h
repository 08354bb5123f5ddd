// ModelRunner: the innermost block runner, the model itself on this rank's weights.
#pragma once

#include <memory>

#include "assay/model.h"
#include "assay/rank_context.h"

namespace assay::train {

/// Keeps references to all three.
std::unique_ptr<BlockRunner> model_runner(const Model& model, Ops& ops,
                                          std::vector<Parameter>& parameters);

}  // namespace assay::train
