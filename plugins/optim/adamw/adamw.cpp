// The AdamW update as adamw.h states it, and its registration.
#include "adamw.h"

#include "assay/glob.h"
#include "assay/plugin.h"

namespace assay::optim {

void AdamW::check(std::span<const ParameterInfo> model) const {
  check_globs("R-GROUPMATCH", "optim/adamw", "decay_exclude", options_.decay_exclude, model);
}

std::vector<StateSlot> AdamW::state_spec(const ParameterInfo& parameter) const {
  const at::ScalarType dtype = statistics_dtype(parameter.dtype);
  return {{.name = "m", .dtype = dtype}, {.name = "v", .dtype = dtype}};
}

void AdamW::update(ParameterShard& p, double lr, int64_t step) const {
  const bool decays = p.decay && !matches_any(options_.decay_exclude, p.name);
  const double decay = decays ? options_.weight_decay : 0.0;
  const AdamWRule rule{options_.beta1, options_.beta2, options_.eps, decay};
  rule.update(p.master, p.grad, p.state[0], p.state[1], lr, step);
}

void AdamW::step(std::span<ParameterShard> shards, const StepContext& context) {
  for (ParameterShard& p : shards) {
    if (p.grad.defined()) update(p, context.lr * p.lr_scale, context.step);
  }
}

}  // namespace assay::optim

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::optim::AdamW>({.name = "adamw",
                                      .summary = "momentum over root mean square, decoupled decay",
                                      .reference = "arXiv:1711.05101",
                                      .default_lr = 8e-4,
                                      .provides = {"meta.safe", "shard.elementwise"}});
}
