// AdamW, the reference optimizer: momentum over the root of the mean square, decoupled decay.
#pragma once

#include "adamw_rule.h"
#include "assay/optimizer.h"
#include "assay/options.h"

namespace assay::optim {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  std::vector<std::string> decay_exclude{};
  std::string implementation = "fused";

  static void declare(OptionTable<AdamWOptions>& t) {
    using enum Affects;
    using O = AdamWOptions;
    t.add(&O::beta1, "beta1", numerics, {0, 1}, "momentum that survives a step");
    t.add(&O::beta2, "beta2", numerics, {0, 1}, "mean square that survives a step");
    t.add(&O::eps, "eps", numerics, {0, 1}, "added to the root of the mean square");
    t.add(&O::weight_decay, "weight_decay", numerics, {0, 10}, "decoupled, times lr");
    t.add(&O::decay_exclude, "decay_exclude", numerics,
          "globs of parameters that do not decay, besides norms and biases");
    t.add(&O::implementation, "implementation", numerics, {"fused", "plain"},
          "fused: one pass over all parameters; plain: LibTorch operations, one by one");
  }
};

/// AdamW, Loshchilov and Hutter, arXiv:1711.05101, t = 1 for the first step:
///
///   w = w * (1 - lr * weight_decay)
///   m = beta1 * m + (1 - beta1) * g
///   v = beta2 * v + (1 - beta2) * g^2
///   w = w - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
class AdamW final : public Optimizer {
 public:
  using Options = AdamWOptions;
  explicit AdamW(const Options& options) : options_(options) {}

  void check(std::span<const ParameterInfo> model) const override;
  std::vector<StateSlot> state_spec(const ParameterInfo& parameter) const override;
  void step(std::span<ParameterShard> shards, const StepContext& context) override;

 private:
  double decay_of(const ParameterShard& shard) const;
  void step_plain(std::span<ParameterShard> shards, const StepContext& context) const;
  void step_fused(std::span<ParameterShard> shards, const StepContext& context) const;

  const Options options_;
};

}  // namespace assay::optim
