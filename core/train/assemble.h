// assemble: puts the parts of a recipe together for one rank.
#pragma once

#include <list>
#include <memory>

#include "assay/api.h"
#include "core/train/recipe.h"

namespace assay::train {

/// Everything that one rank trains with. Not movable: the parts refer to each other.
struct ASSAY_API Assembly {
  Assembly(Recipe r, int rank, GroupSpec group_defaults, at::Device d);
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  Recipe recipe;
  at::Device device;
  Mesh mesh;
  GroupMap groups;
  StepState step;
  Counters counters;
  std::vector<Parameter> parameters;
  RankContext context;
  std::vector<BlockSpec> model_blocks;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<BlockRunner> blocks;
  std::vector<std::unique_ptr<GradientSync>> syncs;
  ActionList actions;                  ///< of this pipeline rank
  std::vector<ParameterShard> shards;  ///< what the optimizer updates, one per parameter
};

/// A zero state tensor for `slot` beside the parameter that `info` describes.
ASSAY_API Tensor make_state(const StateSlot& slot, const ParameterInfo& info, at::Device device);

ASSAY_API std::unique_ptr<Assembly> assemble(Recipe recipe, int rank, GroupSpec group_defaults,
                                             at::Device device);

}  // namespace assay::train
