// Hooks bracket the backward of a block: on its output (before) and on an alias of its input
// (after; on the input itself the previous unit would be gathered before this one is freed).
#include "runner.h"

#include <ATen/core/grad_mode.h>

#include <utility>

namespace assay::parallel {

FsdpRunner::FsdpRunner(std::unique_ptr<BlockRunner> next, const std::vector<BlockSpec>& blocks,
                       std::map<std::string, BlockUnits> units, int64_t prefetch, bool pipelined)
    : next_(std::move(next)), prefetch_(prefetch), pipelined_(pipelined) {
  for (const BlockSpec& block : blocks) {
    place_of_[block.name] = order_.size();
    order_.push_back(units.at(block.name));
  }
}

Tensor FsdpRunner::run(const BlockSpec& block, const BlockInput& input) {
  const size_t place = place_of_.at(block.name);
  const bool training = at::GradMode::is_enabled();
  if (training && pipelined_) return next_->run(block, input);
  if (training) return train(place, block, input);
  acquire(place, Direction::forward);
  Tensor y = next_->run(block, input);
  release(place);
  return y;
}

Tensor FsdpRunner::train(size_t place, const BlockSpec& block, const BlockInput& input) {
  const bool stays = order_[place].stays;
  BlockInput inside = input;
  inside.x = input.x.view_as(input.x);
  inside.x.register_hook([this, place, stays](const Tensor&) {
    release(place);
    if (stays) release(place);
  });
  acquire(place, Direction::forward);
  if (stays) acquire(place, Direction::forward);
  Tensor y = next_->run(block, inside);
  release(place);
  y.register_hook([this, place](const Tensor&) { acquire(place, Direction::backward); });
  return y;
}

void FsdpRunner::acquire(size_t place, Direction direction) {
  for (Unit* unit : order_[place].units) unit->acquire();
  const auto step = static_cast<int64_t>(direction);
  for (int64_t ahead = 1; ahead <= prefetch_; ++ahead) {
    const int64_t next = static_cast<int64_t>(place) + step * ahead;
    if (next < 0 || next >= static_cast<int64_t>(order_.size())) return;
    for (Unit* unit : order_[static_cast<size_t>(next)].units) unit->prefetch();
  }
}

void FsdpRunner::release(size_t place) {
  for (Unit* unit : order_[place].units) unit->release();
}

}  // namespace assay::parallel
