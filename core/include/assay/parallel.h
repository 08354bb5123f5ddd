// ParallelStrategy: the contract of kind `parallel`; a component serves one mesh dimension.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "assay/kind.h"
#include "assay/model.h"
#include "assay/rank_context.h"
#include "assay/schedule.h"

namespace assay {

/// Reduces the gradients of one step over ranks that hold other tokens.
///
/// Called: ready() when a parameter's gradient of an armed microbatch is final (from backward or
///         W); flush() at REDUCE_GRAD: start what has not been started of these parameters; wait()
///         before the optimizer. Under a pipeline, ready() is never called.
/// Chain:  dp_shard's reduces the sinks into Parameter::gradient; dp_replicate's sums
///         Parameter::gradient in place and is flushed after the former's wait().
/// Numerics: gradients are sums: never divide, the loss is already divided by the global token
///         count.
class ASSAY_API GradientSync {
 public:
  virtual ~GradientSync();
  /// Which microbatches may start communication. Default: the last.
  virtual bool arms(int64_t microbatch, int64_t microbatches) const;
  virtual void ready(size_t parameter) = 0;
  virtual void flush(std::span<const size_t> parameters) = 0;
  virtual void wait() = 0;
};

/// How the blocks of a model run as a pipeline.
struct Pipeline {
  std::vector<std::vector<size_t>> blocks;  ///< by stage: indices into Model::blocks()
  std::vector<int64_t> rank_of_stage{};     ///< pp coordinate
  std::vector<ActionList> actions{};        ///< by pp coordinate, with transfers and REDUCE_GRAD
};

/// Splits the work of a model over one mesh dimension. Every function has a neutral default.
///
/// Lifetime: one instance per rank. pipeline() comes first, then place() and shard() for every
///           parameter, prepare(), publish(), and the wraps; the functions of one rank are called
///           from one thread.
class ASSAY_API ParallelStrategy {
 public:
  static constexpr Kind kind = Kind::parallel;
  virtual ~ParallelStrategy();

  /// pp: who runs what, for `ranks` pipeline ranks. Throws Error (R-PPM, R-PPV, R-PPL).
  virtual Pipeline pipeline(const std::vector<BlockSpec>& blocks, int64_t ranks,
                            int64_t microbatches) const;
  /// tp, then ep: cuts the local box of a parameter.
  virtual void place(ParameterPlacement& placement, const Mesh& mesh) const;
  /// dp_shard: cuts the stored box within the local one.
  virtual void shard(ParameterPlacement& stored, const Mesh& mesh) const;
  /// cp: the tokens of a sequence that this rank holds, in its order; empty: all of them.
  virtual std::vector<int64_t> tokens(int64_t seq_len, const Mesh& mesh) const;
  /// tp: in how many parts it cuts the sequence between the blocks (SP), so that a pipeline knows
  /// the shape of what it receives.
  virtual int64_t sequence_parts(const Mesh& mesh) const;

  /// Parameters are placed and their sinks ready, nothing is initialised. dp_shard sets `weight`,
  /// `master` and `gradient` of parameters where it wants others than core's.
  virtual void prepare(const RankContext& context);
  /// dp_shard: masters have changed (initial values, an update, a checkpoint); what primitives read
  /// must follow before the next use. Default: copies master to weight where they differ.
  virtual void publish(const RankContext& context);

  virtual std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& context);
  virtual std::unique_ptr<BlockRunner> wrap_block(std::unique_ptr<BlockRunner> next,
                                                  const RankContext& context);
  virtual std::unique_ptr<GradientSync> gradient_sync(const RankContext& context);
  /// dp_shard under a pipeline: the actions UNSHARD and RESHARD of a stage with these blocks.
  virtual void unshard(std::span<const BlockSpec> blocks);
  virtual void reshard(std::span<const BlockSpec> blocks);

  /// Counters (RankContext::counters) that must be above zero after a run at degree > 1.
  virtual std::vector<std::string> engagement() const;
};

}  // namespace assay
