// Numbering of microbatches and the queue of weight gradients.
#include "core/schedule/row_builder.h"

#include <algorithm>

namespace assay {

void RowBuilder::backward_input(int64_t stage) {
  const int64_t microbatch = backwards_[stage]++;
  add(stage, ActionKind::backward_input, microbatch);
  queue_.push_back({stage, ActionKind::backward_weight, microbatch});
}

void RowBuilder::backward_weight() {
  if (queue_.empty()) return;
  list_.push_back(queue_.front());
  queue_.pop_front();
}

void RowBuilder::backward_weight(int64_t stage) {
  const auto oldest = std::find_if(queue_.begin(), queue_.end(),
                                   [&](const Action& action) { return action.stage == stage; });
  if (oldest == queue_.end()) return;
  list_.push_back(*oldest);
  queue_.erase(oldest);
}

void RowBuilder::overlap(int64_t forward_stage, int64_t backward_stage) {
  forward(forward_stage);
  list_.back().overlaps_next = true;
  backward(backward_stage);
}

int64_t RowBuilder::forwards(int64_t stage) const {
  const auto found = forwards_.find(stage);
  return found == forwards_.end() ? 0 : found->second;
}

}  // namespace assay
