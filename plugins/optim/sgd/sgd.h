// SGD with momentum, the optimizer with the least state.
#pragma once

#include "assay/optimizer.h"
#include "assay/options.h"

namespace assay::optim {

struct SgdOptions {
  double momentum = 0.9;
  double dampening = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;

  static void declare(OptionTable<SgdOptions>& t) {
    using enum Affects;
    using O = SgdOptions;
    t.add(&O::momentum, "momentum", numerics, {0, 1}, "share of the buffer that survives a step");
    t.add(&O::dampening, "dampening", numerics, {0, 1}, "share of the gradient left out of it");
    t.add(&O::nesterov, "nesterov", numerics, "step along g + momentum * buffer");
    t.add(&O::weight_decay, "weight_decay", numerics, {0, 10}, "coupled: added to the gradient");
  }
};

/// Stochastic gradient descent with momentum (Sutskever et al. 2013, ICML, sections 2 and 3):
///
///   g = g + weight_decay * w
///   b = momentum * b + (1 - dampening) * g      b = g at step 1
///   w = w - lr * (nesterov ? g + momentum * b : b)
///
/// Momentum 0 keeps no state: w = w - lr * g.
class Sgd final : public Optimizer {
 public:
  using Options = SgdOptions;
  explicit Sgd(const Options& options) : options_(options) {}

  std::vector<StateSlot> state_spec(const ParameterInfo& parameter) const override;
  void step(std::span<ParameterShard> shards, const StepContext& context) override;

 private:
  void update(ParameterShard& p, double lr, bool first) const;

  const Options options_;
};

}  // namespace assay::optim
