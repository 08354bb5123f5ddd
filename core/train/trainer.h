// Trainer: one rank's training loop on an assembled recipe, step by step.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "assay/api.h"
#include "core/train/assemble.h"
#include "core/train/batches.h"
#include "core/train/interpreter.h"

namespace assay::train {

/// Global values of one step (the same on every rank) and this rank's times.
struct StepResult {
  double loss = 0;       ///< mean over the step's valid tokens, nats
  double grad_norm = 0;  ///< before clipping
  double lr = 0;
  int64_t tokens = 0;  ///< global_batch * seq_len
  double wall_s = 0, data_wait_s = 0, forward_s = 0, backward_s = 0, optimizer_s = 0;
  double comm_exposed_s = 0;
  double virtual_step_s = -1;           ///< of a pipeline, see virtual_time.h; -1: there is none
  int64_t saved_activation_bytes = -1;  ///< of the first microbatch; -1: not measured in this step
  std::map<std::string, double> metrics{};  ///< of the model, by name
};

struct EvalResult {
  double loss = 0;  ///< mean over the valid tokens of all batches, nats
  int64_t tokens = 0;
  double bytes_per_token = 0;  ///< of text, for bits per byte
  double wall_s = 0;
};

class ASSAY_API Trainer {
 public:
  explicit Trainer(std::unique_ptr<Assembly> assembly);

  /// Step numbers count from 0. `measure_activations` opens the saved-tensor ledger (slower).
  StepResult step(int64_t number, bool measure_activations = false);
  EvalResult evaluate(int64_t batches);

  Assembly& assembly() { return *assembly_; }
  const Batches& batches() const { return batches_; }

 private:
  double global_sum(double value);
  double loss_total(const Tensor& loss_sum);
  void update(int64_t number, StepResult& result);

  std::unique_ptr<Assembly> assembly_;
  Batches batches_;
  Interpreter interpreter_;
};

}  // namespace assay::train
