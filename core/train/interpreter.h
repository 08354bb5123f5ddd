// Interpreter: runs one optimizer step's action list (forward, backward, I and W, transfers,
// unshard, reduce).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "assay/api.h"
#include "core/train/assemble.h"
#include "core/train/batches.h"

namespace assay::train {

/// Seconds of one step by part, and its loss.
struct StepParts {
  Tensor loss_sum{};  ///< over this rank's valid tokens, fp64 scalar; undefined off the last stage
  double forward_s = 0;
  double backward_s = 0;
};

class ASSAY_API Interpreter {
 public:
  explicit Interpreter(Assembly& assembly);

  /// Gradients of loss_sum / global_tokens end up in Parameter::gradient, reduced over the ranks.
  StepParts run(const Batch& batch, double global_tokens);

  /// The loss sum over this rank's tokens, without gradients; undefined off the last stage.
  Tensor evaluate(const Batch& batch);

  /// Thread-CPU seconds of the last step's actions, in the order of the list: what an action costs
  /// where ranks share cores.
  const std::vector<double>& action_cpu_s() const { return action_cpu_s_; }

 private:
  using Key = std::pair<int64_t, int64_t>;  // stage, microbatch
  struct Flow {
    Tensor input, output;
  };
  struct Transfer {
    Work work;
    Tensor tensor;
  };

  void perform(const Action& action, const Batch& batch, double global_tokens, StepParts& parts);
  void announce(const Action& action);
  void forward(const Action& action, const Batch& batch, StepParts& parts);
  void backward(const Action& action, double global_tokens);
  void weights(const Action& action);
  void reduce(const Action& action);
  void finish_reductions();
  void send(const Tensor& tensor, int64_t to_stage);
  void receive(const Key& key, int64_t from_stage, const Batch& batch,
               std::map<Key, Transfer>& into);

  const Stage& stage(int64_t index) const;
  bool here(int64_t stage) const;
  int rank_of(int64_t stage) const;
  Tensor boundary(const Microbatch& micro) const;
  BlockInput input_of(const Microbatch& micro) const;
  Tensor through(const Stage& stage, BlockInput input);

  Assembly& a_;
  const int64_t residual_parts_;
  std::map<Key, Flow> flows_;
  std::map<Key, Transfer> inputs_, gradients_;  ///< that arrived (or arrive) for a stage
  std::map<Key, Tensor> input_gradients_;       ///< to be sent back
  std::map<Key, std::vector<std::function<void()>>> deferred_;
  std::vector<Transfer> sent_;
  std::vector<double> action_cpu_s_;
};

}  // namespace assay::train
