// Lion, an optimizer that moves every weight by the same distance and keeps one state tensor.
#pragma once

#include "assay/optimizer.h"
#include "assay/options.h"

namespace assay::optim {

struct LionOptions {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.1;

  static void declare(OptionTable<LionOptions>& t) {
    using enum Affects;
    t.add(&LionOptions::beta1, "beta1", numerics, {0, 1}, "share of momentum in what is signed");
    t.add(&LionOptions::beta2, "beta2", numerics, {0, 1}, "momentum that survives a step");
    t.add(&LionOptions::weight_decay, "weight_decay", numerics, {0, 10}, "decoupled, times lr");
  }
};

/// Lion (EvoLved Sign Momentum), Chen et al. 2023, arXiv:2302.06675, algorithm 2:
///
///   c = beta1 * m + (1 - beta1) * g
///   w = w - lr * (sign(c) + weight_decay * w)
///   m = beta2 * m + (1 - beta2) * g            m = 0 at first; no bias correction
///
/// The rate is the run's `optim.lr`, its default the manifest's. Coming from AdamW: divide it by
/// 3 to 10 and multiply weight_decay by as much.
class Lion final : public Optimizer {
 public:
  using Options = LionOptions;
  explicit Lion(const Options& options) : options_(options) {}

  std::vector<StateSlot> state_spec(const ParameterInfo& parameter) const override;
  void step(std::span<ParameterShard> shards, const StepContext& context) override;

 private:
  const Options options_;
};

}  // namespace assay::optim
