// Muon: momentum of a matrix made orthogonal; AdamW for everything that is no hidden matrix.
#pragma once

#include "assay/optimizer.h"
#include "assay/options.h"

namespace assay::optim {

struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  int64_t ns_steps = 5;
  std::string ns_dtype = "bf16";
  std::string scale = "original";
  std::vector<std::string> rest{};
  double rest_lr_scale = 1.0;
  double rest_beta1 = 0.9;
  double rest_beta2 = 0.95;
  double rest_eps = 1e-8;

  static void declare(OptionTable<MuonOptions>& t) {
    using enum Affects;
    using O = MuonOptions;
    t.add(&O::momentum, "momentum", numerics, {0, 1}, "momentum that survives a step");
    t.add(&O::nesterov, "nesterov", numerics, "orthogonalise a look ahead instead of m");
    t.add(&O::weight_decay, "weight_decay", numerics, {0, 10}, "decoupled, times lr; rest too");
    t.add(&O::ns_steps, "ns_steps", numerics, {1, 99}, "steps of the Newton-Schulz iteration");
    t.add(&O::ns_dtype, "ns_dtype", numerics, {"bf16", "fp32", "fp64"}, "of its products");
    t.add(&O::scale, "scale", numerics, {"original", "match_rms_adamw", "spectral"},
          "what the orthogonal matrix is multiplied by");
    t.add(&O::rest, "rest", numerics, "globs of matrices that AdamW updates as well");
    t.add(&O::rest_lr_scale, "rest_lr_scale", numerics, {0, 1e4}, "rest: multiplies lr");
    t.add(&O::rest_beta1, "rest_beta1", numerics, {0, 1}, "rest: AdamW's beta1");
    t.add(&O::rest_beta2, "rest_beta2", numerics, {0, 1}, "rest: AdamW's beta2");
    t.add(&O::rest_eps, "rest_eps", numerics, {0, 1}, "rest: AdamW's eps");
  }
};

/// Muon, Jordan 2024 (https://kellerjordan.github.io/posts/muon), with the weight decay and scale
/// of Liu et al. 2025, arXiv:2502.16982. For a hidden matrix (rows, cols):
///
///   m = momentum * m + (1 - momentum) * g
///   u = nesterov ? (1 - momentum) * g + momentum * m : m
///   w = w * (1 - lr * weight_decay) - lr * rho * newton_schulz(u)
///
/// rho: original sqrt(max(1, rows / cols)); match_rms_adamw 0.2 sqrt(max(rows, cols)), so that
/// AdamW's lr and decay can be kept; spectral sqrt(rows / cols). It needs whole matrices: on a
/// shard it would be another algorithm. Embeddings, heads, norms, biases and routers are the rest.
class Muon final : public Optimizer {
 public:
  using Options = MuonOptions;
  explicit Muon(const Options& options) : options_(options) {}

  void check(std::span<const ParameterInfo> model) const override;
  /// One slot for a matrix of Muon, AdamW's two for the rest.
  std::vector<StateSlot> state_spec(const ParameterInfo& parameter) const override;
  void step(std::span<ParameterShard> shards, const StepContext& context) override;

 private:
  bool orthogonalises(const ParameterInfo& parameter) const;
  void update_matrix(ParameterShard& p, double lr) const;
  void update_rest(ParameterShard& p, double lr, int64_t step) const;

  const Options options_;
};

}  // namespace assay::optim
