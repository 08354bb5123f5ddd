// Schedule: one optimizer step as lists of actions in PyTorch's pipeline notation (recipes 2.9).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "assay/api.h"

namespace assay {

enum class ActionKind {
  forward,           ///< F
  backward,          ///< B: gradients of inputs and weights
  backward_input,    ///< I: gradients of inputs; weight thunks are queued
  backward_weight,   ///< W: runs the queued thunks
  send_forward,      ///< SEND_F: activations to stage + 1
  receive_forward,   ///< RECV_F: posts the receive; the F of its stage waits for it
  send_backward,     ///< SEND_B: gradients to stage - 1
  receive_backward,  ///< RECV_B: posts the receive; the B or I of its stage waits for it
  unshard,           ///< UNSHARD
  reshard,           ///< RESHARD
  reduce_gradients,  ///< REDUCE_GRAD
};

struct Action {
  int64_t stage = 0;
  ActionKind kind = ActionKind::forward;
  int64_t microbatch = 0;  ///< 0 where the notation has none: UNSHARD, RESHARD, REDUCE_GRAD
  /// A forward that may run at the same time as the backward right after it in the list; running
  /// one after the other is correct too. Written "(0F4;7B1)OVERLAP_F_B".
  bool overlaps_next = false;

  friend bool operator==(const Action&, const Action&) = default;
};

using ActionList = std::vector<Action>;

/// F, B, I or W: what a compute-only list holds.
ASSAY_API bool is_compute(ActionKind kind);

/// "0F1", "1I0", "2SEND_F3", "0REDUCE_GRAD".
ASSAY_API std::string print(const Action& action);
/// The actions as a CSV row: "0F0,(0F1;1B0)OVERLAP_F_B".
ASSAY_API std::string print(std::span<const Action> actions);
/// Throws Error naming the text; the hint is the nearest action.
ASSAY_API Action parse_action(const std::string& text);
/// One cell of a CSV row: one action, or the two of an overlapped pair. Throws Error.
ASSAY_API ActionList parse_cell(const std::string& text);

/// What runs as one from `index` on: an action, or an overlapped pair.
ASSAY_API std::span<const Action> unit_at(const ActionList& list, size_t index);

/// Gradient accumulation without a pipeline: 0F0 0B0 0F1 0B1 ... 0REDUCE_GRAD.
ASSAY_API ActionList accumulation_schedule(int64_t microbatches);

}  // namespace assay
