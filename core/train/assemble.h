// assemble: puts the parts of a recipe together for one rank.
#pragma once

#include <list>
#include <memory>

#include "assay/api.h"
#include "core/train/recipe.h"

namespace assay::train {

/// The blocks of one pipeline stage that runs on this rank; without a pipeline there is one stage.
struct Stage {
  int64_t index = 0;
  bool first = true, last = true;
  std::vector<BlockSpec> blocks{};
  std::vector<size_t> parameters{};  ///< that its blocks read, each once
};

/// Everything that one rank trains with. Not movable: the parts refer to each other.
struct ASSAY_API Assembly {
  Assembly(Recipe r, int rank, GroupSpec group_defaults, at::Device d);
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  ParallelStrategy* strategy(MeshDim dim) const;  ///< null where the dimension is not in use
  const ActionList& actions() const;              ///< of this pipeline rank

  Recipe recipe;
  at::Device device;
  Mesh mesh;
  GroupMap groups;
  Pipeline pipeline;
  std::vector<Stage> stages;      ///< on this rank
  std::vector<BlockSpec> blocks;  ///< of these stages, in order
  StepState step;
  Counters counters;
  std::vector<Parameter> parameters;
  std::vector<KeptTensor> kept;  ///< what components want in checkpoints
  RankContext context;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Trace> trace;  ///< null unless train.trace asks for it
  std::unique_ptr<BlockRunner> runner;
  std::vector<std::unique_ptr<GradientSync>> syncs;  ///< a chain: dp_shard's, then dp_replicate's
  std::vector<ParameterShard> shards;                ///< what the optimizer updates
  std::vector<size_t> parameter_of;                  ///< index into `parameters`, by shard
};

/// In how many parts the sequence is cut between the blocks (sequence parallelism).
ASSAY_API int64_t sequence_parts(const Assembly& assembly);

/// Sums `tensor` in place over the ranks that hold other tokens of the same blocks; traffic that
/// informs or decides (phase control).
ASSAY_API void sum_over_tokens(Assembly& assembly, Tensor& tensor);

/// Makes what primitives read follow the masters.
ASSAY_API void publish(Assembly& assembly);

/// A zero state tensor for `slot` beside the parameter that `info` describes.
ASSAY_API Tensor make_state(const StateSlot& slot, const ParameterInfo& info, at::Device device);

ASSAY_API std::unique_ptr<Assembly> assemble(Recipe recipe, int rank, GroupSpec group_defaults,
                                             at::Device device);

}  // namespace assay::train
