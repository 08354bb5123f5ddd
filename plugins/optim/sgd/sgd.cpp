// The SGD update as sgd.h states it, and its registration.
#include "sgd.h"

#include "assay/plugin.h"

namespace assay::optim {

std::vector<StateSlot> Sgd::state_spec(const ParameterInfo& parameter) const {
  if (options_.momentum == 0) return {};
  return {{.name = "b", .dtype = statistics_dtype(parameter.dtype)}};
}

void Sgd::update(ParameterShard& p, double lr, bool first) const {
  const auto& o = options_;
  const double decay = p.decay ? o.weight_decay : 0.0;
  const at::Tensor g = decay > 0 ? p.grad.add(p.master, decay) : p.grad;
  if (p.state.empty()) {
    p.master.sub_(g, lr);
    return;
  }
  at::Tensor& b = p.state[0];
  b.mul_(o.momentum).add_(g, first ? 1.0 : 1 - o.dampening);
  p.master.sub_(o.nesterov ? g.add(b, o.momentum) : b, lr);
}

void Sgd::step(std::span<ParameterShard> shards, const StepContext& context) {
  for (ParameterShard& p : shards) {
    if (p.grad.defined()) update(p, context.lr * p.lr_scale, context.step == 1);
  }
}

}  // namespace assay::optim

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::optim::Sgd>(
      {.name = "sgd",
       .summary = "gradient descent with momentum",
       .reference = "https://proceedings.mlr.press/v28/sutskever13.html",
       .default_lr = 0.1,
       .provides = {"meta.safe", "shard.elementwise"},
       .rules = {{"R-NESTEROV", "not nesterov or (momentum > 0 and dampening == 0)",
                  "Nesterov's step needs momentum and no dampening"}}});
}
