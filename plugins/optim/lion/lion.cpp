// The Lion update, line by line as lion.h states it, and its registration.
#include "lion.h"

#include "assay/plugin.h"

namespace assay::optim {
namespace {

void update(ParameterShard& p, const LionOptions& o, double lr) {
  at::Tensor& m = p.state[0];
  const double decay = p.decay ? o.weight_decay : 0.0;
  const at::Tensor c = m.mul(o.beta1).add(p.grad, 1 - o.beta1);
  p.master.mul_(1 - lr * decay).sub_(c.sign(), lr);
  m.mul_(o.beta2).add_(p.grad, 1 - o.beta2);
}

}  // namespace

std::vector<StateSlot> Lion::state_spec(const ParameterInfo& parameter) const {
  return {{.name = "m", .dtype = statistics_dtype(parameter.dtype)}};
}

void Lion::step(std::span<ParameterShard> shards, const StepContext& context) {
  for (ParameterShard& p : shards) {
    if (p.grad.defined()) update(p, options_, context.lr * p.lr_scale);
  }
}

}  // namespace assay::optim

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::optim::Lion>({.name = "lion",
                                     .summary = "sign of momentum; half the state of AdamW",
                                     .reference = "arXiv:2302.06675",
                                     .default_lr = 1e-4,
                                     .provides = {"meta.safe", "shard.elementwise"}});
}
