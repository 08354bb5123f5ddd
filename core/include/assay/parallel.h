// ParallelStrategy: the contract of kind `parallel`; a component serves one mesh dimension.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assay/kind.h"
#include "assay/model.h"
#include "assay/rank_context.h"
#include "assay/schedule.h"

namespace assay {

/// Reduces the gradients of one step over the ranks that hold other tokens.
///
/// Called: ready() when a parameter's gradient is final in an armed microbatch (from backward or
///         W); flush() at REDUCE_GRAD: start what has not been started; wait() before the
///         optimizer. Gradients are sums: never divide, the loss is already divided by the global
///         token count.
class ASSAY_API GradientSync {
 public:
  virtual ~GradientSync();
  /// Which microbatches may start communication. Default: the last.
  virtual bool arms(int64_t microbatch, int64_t microbatches) const;
  virtual void ready(size_t parameter) = 0;
  virtual void flush() = 0;
  virtual void wait() = 0;
};

/// Splits the work of a model over one mesh dimension. Every function has a neutral default.
class ASSAY_API ParallelStrategy {
 public:
  static constexpr Kind kind = Kind::parallel;
  virtual ~ParallelStrategy();

  /// Cuts the boxes of parameters; called for tp, then ep, then dp_shard.
  virtual void place(ParameterPlacement& placement, const Mesh& mesh) const;
  virtual std::unique_ptr<Ops> wrap_ops(std::unique_ptr<Ops> next, const RankContext& context);
  virtual std::unique_ptr<BlockRunner> wrap_block(std::unique_ptr<BlockRunner> next,
                                                  const RankContext& context);
  virtual std::unique_ptr<GradientSync> gradient_sync(const RankContext& context);
  virtual std::unique_ptr<Schedule> schedule(const RankContext& context);

  /// Counters (RankContext::counters) that must be above zero after a run at degree > 1.
  virtual std::vector<std::string> engagement() const;
};

}  // namespace assay
