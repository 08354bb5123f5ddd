// Interpreter: runs one optimizer step's action list (forward, backward, I and W, sends, reduce).
#pragma once

#include <map>
#include <utility>

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

  /// Gradients of loss_sum / global_tokens end up in the sinks, reduced over the ranks.
  StepParts run(const Batch& batch, double global_tokens);

  /// The loss sum over this rank's tokens, without gradients.
  Tensor evaluate(const Batch& batch);

 private:
  using Key = std::pair<int64_t, int64_t>;  // stage, microbatch
  struct Flow {
    Tensor input, output;
  };

  void forward(const Action& action, const Batch& batch, StepParts& parts);
  void backward(const Action& action, double global_tokens);
  void weights(const Action& action);
  void announce(const Action& action);
  void reduce();
  BlockInput input_of(const Microbatch& micro) const;

  Assembly& a_;
  int64_t microbatches_ = 1;
  std::map<Key, Flow> flows_;
  std::map<Key, std::vector<std::function<void()>>> deferred_;
};

}  // namespace assay::train
