// Schedule: one optimizer step as lists of actions in PyTorch's pipeline notation (recipes 2.9).
#pragma once

#include <cstdint>
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
  receive_forward,   ///< RECV_F
  send_backward,     ///< SEND_B: gradients to stage - 1
  receive_backward,  ///< RECV_B
  unshard,           ///< UNSHARD
  reshard,           ///< RESHARD
  reduce_gradients,  ///< REDUCE_GRAD
};

struct Action {
  int64_t stage = 0;
  ActionKind kind = ActionKind::forward;
  int64_t microbatch = 0;
};

/// "0F1", "1I0", "2SEND_F3", "0REDUCE_GRAD".
ASSAY_API std::string print(const Action& action);
/// Throws Error naming the text.
ASSAY_API Action parse_action(const std::string& text);

using ActionList = std::vector<Action>;

/// Generates the action list of each pipeline rank.
class ASSAY_API Schedule {
 public:
  virtual ~Schedule();
  virtual std::vector<ActionList> actions(int64_t pipeline_ranks, int64_t microbatches) const = 0;
};

/// Gradient accumulation without a pipeline: 0F0 0B0 0F1 0B1 ... 0REDUCE_GRAD.
ASSAY_API ActionList accumulation_schedule(int64_t microbatches);

}  // namespace assay
