// The Muon update as muon.h states it, and its registration.
#include "muon.h"

#include <algorithm>
#include <cmath>

#include "../adamw/adamw_rule.h"
#include "assay/error.h"
#include "assay/glob.h"
#include "assay/plugin.h"
#include "newton_schulz.h"

namespace assay::optim {
namespace {

at::ScalarType product_dtype(const std::string& name) {
  return name == "bf16" ? at::kBFloat16 : name == "fp32" ? at::kFloat : at::kDouble;
}

double scale_of(const std::string& rule, const at::Tensor& matrix) {
  const auto rows = static_cast<double>(matrix.size(0)), cols = static_cast<double>(matrix.size(1));
  if (rule == "match_rms_adamw") return 0.2 * std::sqrt(std::max(rows, cols));
  if (rule == "spectral") return std::sqrt(rows / cols);
  return std::sqrt(std::max(1.0, rows / cols));
}

}  // namespace

bool Muon::orthogonalises(const ParameterInfo& parameter) const {
  return parameter.role == ParameterRole::matrix && !matches_any(options_.rest, parameter.name);
}

void Muon::check(std::span<const ParameterInfo> model) const {
  check_globs("R-GROUPMATCH", "optim/muon", "rest", options_.rest, model);
  for (const ParameterInfo& p : model) {
    if (!orthogonalises(p) || p.shape.size() == 2) continue;
    throw Error("[R-MUONDIM] optim/muon: '" + p.name + "' has " + std::to_string(p.shape.size()) +
                    " dimensions; Muon orthogonalises matrices",
                "add it to optim.rest");
  }
}

std::vector<StateSlot> Muon::state_spec(const ParameterInfo& parameter) const {
  const at::ScalarType dtype = statistics_dtype(parameter.dtype);
  if (!orthogonalises(parameter)) {
    return {{.name = "m", .dtype = dtype}, {.name = "v", .dtype = dtype}};
  }
  if (parameter.shard_shape != parameter.shape) {
    throw Error("[R-MUONSHARD] optim/muon: '" + parameter.name +
                    "' is sharded; orthogonalised shards are another algorithm",
                "use dp_replicate with ddp, or add the matrix to optim.rest");
  }
  return {{.name = "m", .dtype = dtype}};
}

void Muon::update_matrix(ParameterShard& p, double lr) const {
  const auto& o = options_;
  const double mu = o.momentum, decay = p.decay ? o.weight_decay : 0.0;
  at::Tensor& m = p.state[0];
  m.mul_(mu).add_(p.grad, 1 - mu);
  const at::Tensor u = o.nesterov ? m.mul(mu).add_(p.grad, 1 - mu) : m;
  const at::Tensor x = newton_schulz(u, o.ns_steps, product_dtype(o.ns_dtype));
  p.master.mul_(1 - lr * decay).sub_(x, lr * scale_of(o.scale, x));
}

void Muon::update_rest(ParameterShard& p, double lr, int64_t step) const {
  const auto& o = options_;
  const double decay = p.decay ? o.weight_decay : 0.0;
  const AdamWRule rule{o.rest_beta1, o.rest_beta2, o.rest_eps, decay};
  rule.update(p.master, p.grad, p.state[0], p.state[1], lr * o.rest_lr_scale, step);
}

void Muon::step(std::span<ParameterShard> shards, const StepContext& context) {
  for (ParameterShard& p : shards) {
    if (!p.grad.defined()) continue;
    const double lr = context.lr * p.lr_scale;
    p.state.size() == 1 ? update_matrix(p, lr) : update_rest(p, lr, context.step);
  }
}

}  // namespace assay::optim

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::optim::Muon>(
      {.name = "muon",
       .summary = "orthogonalised momentum for hidden matrices, AdamW for the rest",
       .reference = "https://kellerjordan.github.io/posts/muon, arXiv:2502.16982",
       .default_lr = 1e-3,
       .provides = {"meta.safe"},
       .needs = {"param.whole"},
       .rules = {{"R-GROUPMATCH", "rest == [] or unmatched(rest, facts.parameter_names) == []",
                  "a glob of rest matches no parameter"}}});
}
