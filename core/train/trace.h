// Trace: digests of what a step computes, for finding the first place where two runs part.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "assay/api.h"
#include "assay/model.h"
#include "assay/parameter.h"
#include "assay/rank_context.h"

namespace assay::train {

enum class TraceLevel { off, blocks, ops };

/// Sum and sum of squares in fp64: they add up over microbatches and over the ranks of any layout.
struct Digest {
  double sum = 0, squares = 0;
};

/// Digests of one step by point: "forward layers.3", "backward layers.3" (the gradient of a block's
/// output), "gradient NAME" (reduced, before clipping), "weights NAME" (after the update), and on
/// level ops "op layers.3 0017 assay::linear" (outputs in the order of the forward; not inside
/// blocks that selective recompute watches). What several ranks hold alike is counted on the first.
class ASSAY_API Trace {
 public:
  Trace(TraceLevel level, const RankContext& context, int64_t sequence_parts);

  /// Outermost at the block seam.
  std::unique_ptr<BlockRunner> wrap(std::unique_ptr<BlockRunner> next);
  void begin() { points_.clear(); }
  void add(const std::string& point, const Tensor& value);
  bool counts(const BlockSpec& block) const;
  TraceLevel level() const { return level_; }
  const std::map<std::string, Digest>& points() const { return points_; }

 private:
  const TraceLevel level_;
  const RankContext& context_;
  const bool residual_is_cut_;
  std::map<std::string, Digest> points_;
};

}  // namespace assay::train
