// FsdpRunner: acquires the units of a block around its forward and its backward.
#pragma once

#include <map>

#include "assay/parallel.h"
#include "unit.h"

namespace assay::parallel {

/// The units of a block, and whether its weights stay whole from forward to backward.
struct BlockUnits {
  std::vector<Unit*> units{};
  bool stays = false;
};

class FsdpRunner final : public BlockRunner {
 public:
  /// `blocks` in the order in which they run; prefetch looks that many ahead.
  FsdpRunner(std::unique_ptr<BlockRunner> next, const std::vector<BlockSpec>& blocks,
             std::map<std::string, BlockUnits> units, int64_t prefetch, bool pipelined);

  Tensor run(const BlockSpec& block, const BlockInput& input) override;

 private:
  /// A block under way in this microbatch.
  enum class Direction { forward = 1, backward = -1 };

  void acquire(size_t place, Direction direction);
  void release(size_t place);
  Tensor train(size_t place, const BlockSpec& block, const BlockInput& input);

  std::unique_ptr<BlockRunner> next_;
  std::vector<BlockUnits> order_;
  std::map<std::string, size_t> place_of_;
  const int64_t prefetch_;
  const bool pipelined_;
};

}  // namespace assay::parallel
