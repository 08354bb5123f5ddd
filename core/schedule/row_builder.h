// RowBuilder: one rank's list while a generator writes it; it numbers the microbatches.
#pragma once

#include <deque>
#include <map>

#include "assay/schedule.h"

namespace assay {

/// Microbatches run 0, 1, 2, ... separately per stage and letter; B and I share one counter, and
/// W takes them in the order of its I's.
class RowBuilder {
 public:
  void forward(int64_t stage) { add(stage, ActionKind::forward, forwards_[stage]++); }
  void backward(int64_t stage) { add(stage, ActionKind::backward, backwards_[stage]++); }
  /// I; its W is queued.
  void backward_input(int64_t stage);
  /// B, or I with its W queued.
  void backward(int64_t stage, bool split) { split ? backward_input(stage) : backward(stage); }
  /// The oldest queued W, if there is any.
  void backward_weight();
  /// The oldest queued W of this stage, if there is any.
  void backward_weight(int64_t stage);
  /// F and B that may run together.
  void overlap(int64_t forward_stage, int64_t backward_stage);

  int64_t forwards(int64_t stage) const;
  bool weights_queued() const { return !queue_.empty(); }

  ActionList take() { return std::move(list_); }

 private:
  void add(int64_t stage, ActionKind kind, int64_t microbatch) {
    list_.push_back({stage, kind, microbatch});
  }

  ActionList list_{};
  std::map<int64_t, int64_t> forwards_{}, backwards_{};
  std::deque<Action> queue_{};  // W's whose I has been written
};

}  // namespace assay
