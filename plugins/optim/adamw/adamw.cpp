// The AdamW update as adamw.h states it, and its registration.
#include "adamw.h"

#include "assay/glob.h"
#include "assay/plugin.h"
#include "fused_adamw.h"

namespace assay::optim {

void AdamW::check(std::span<const ParameterInfo> model) const {
  check_globs("R-GROUPMATCH", "optim/adamw", "decay_exclude", options_.decay_exclude, model);
}

std::vector<StateSlot> AdamW::state_spec(const ParameterInfo& parameter) const {
  const at::ScalarType dtype = statistics_dtype(parameter.dtype);
  return {{.name = "m", .dtype = dtype}, {.name = "v", .dtype = dtype}};
}

double AdamW::decay_of(const ParameterShard& shard) const {
  const bool decays = shard.decay && !matches_any(options_.decay_exclude, shard.name);
  return decays ? options_.weight_decay : 0.0;
}

void AdamW::step_plain(std::span<ParameterShard> shards, const StepContext& context) const {
  const auto& o = options_;
  for (ParameterShard& p : shards) {
    if (!p.grad.defined()) continue;
    const AdamWRule rule{o.beta1, o.beta2, o.eps, decay_of(p)};
    rule.update(p.master, p.grad, p.state[0], p.state[1], context.lr * p.lr_scale, context.step);
  }
}

void AdamW::step_fused(std::span<ParameterShard> shards, const StepContext& context) const {
  std::vector<FusedAdamWShard> list;
  for (const ParameterShard& p : shards) {
    if (!p.grad.defined()) continue;
    list.push_back({.master = p.master,
                    .grad = p.grad,
                    .exp_avg = p.state[0],
                    .exp_avg_sq = p.state[1],
                    .lr = context.lr * p.lr_scale,
                    .weight_decay = decay_of(p)});
  }
  fused_adamw(list, {context.step, options_.beta1, options_.beta2, options_.eps});
}

void AdamW::step(std::span<ParameterShard> shards, const StepContext& context) {
  options_.implementation == "fused" ? step_fused(shards, context) : step_plain(shards, context);
}

}  // namespace assay::optim

ASSAY_PLUGIN(registrar) {
  assay::optim::register_fused_adamw();
  registrar.add<assay::optim::AdamW>(
      {.name = "adamw",
       .summary = "momentum over root mean square, decoupled decay",
       .reference = "arXiv:1711.05101",
       .default_lr = 8e-4,
       .provides = {"meta.safe", "shard.elementwise"},
       .rules = {{"R-GROUPMATCH",
                  "decay_exclude == [] or unmatched(decay_exclude, facts.parameter_names) == []",
                  "a glob of decay_exclude matches no parameter"}}});
}
