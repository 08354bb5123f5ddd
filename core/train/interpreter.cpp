// The actions of one step, one function per kind.
#include "core/train/interpreter.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "assay/error.h"
#include "core/base/clock.h"

namespace assay::train {
namespace {

// The first block's x: without an input that requires grad no autograd node would exist.
Tensor anchor(const Assembly& a) {
  const auto options = at::TensorOptions(a.recipe.precision->dtypes().compute).device(a.device);
  return at::empty({0}, options).requires_grad_();
}

}  // namespace

Interpreter::Interpreter(Assembly& assembly) : a_(assembly) {
  for (const Action& action : a_.actions) {
    microbatches_ = std::max(microbatches_, action.microbatch + 1);
    ASSAY_CHECK(action.stage == 0, "pipeline stages are run by parallel/pp's own interpreter");
  }
}

StepParts Interpreter::run(const Batch& batch, double global_tokens) {
  StepParts parts;
  flows_.clear();
  deferred_.clear();
  for (Parameter& p : a_.parameters) p.sink.reset();
  for (const Action& action : a_.actions) {
    const double start = monotonic_s();
    announce(action);
    switch (action.kind) {
      case ActionKind::forward:
        forward(action, batch, parts);
        parts.forward_s += monotonic_s() - start;
        continue;
      case ActionKind::backward:
      case ActionKind::backward_input:
        backward(action, global_tokens);
        break;
      case ActionKind::backward_weight:
        weights(action);
        break;
      case ActionKind::reduce_gradients:
        reduce();
        break;
      default:
        throw Error("action " + print(action) + " needs a pipeline or sharded parameters");
    }
    parts.backward_s += monotonic_s() - start;
  }
  for (const auto& sync : a_.syncs) sync->wait();
  return parts;
}

void Interpreter::announce(const Action& action) {
  a_.step.microbatch = action.microbatch;
  a_.step.deferring = action.kind == ActionKind::backward_input;
  a_.step.armed = false;
  const bool runs_thunks =
      action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight;
  for (const auto& sync : a_.syncs) {
    if (runs_thunks && sync->arms(action.microbatch, microbatches_)) a_.step.armed = true;
  }
}

BlockInput Interpreter::input_of(const Microbatch& micro) const {
  BlockInput input;
  input.x = anchor(a_);
  input.ids = micro.ids;
  input.labels = micro.labels;
  input.documents = micro.documents;
  return input;
}

void Interpreter::forward(const Action& action, const Batch& batch, StepParts& parts) {
  const PhaseScope phase("forward");
  BlockInput input = input_of(batch.microbatches.at(static_cast<size_t>(action.microbatch)));
  Flow flow{input.x, {}};
  for (const BlockSpec& block : a_.model_blocks) input.x = a_.blocks->run(block, input);
  flow.output = input.x;
  const Tensor loss = input.x.detach();
  parts.loss_sum = parts.loss_sum.defined() ? parts.loss_sum.add(loss) : loss;
  flows_[{action.stage, action.microbatch}] = std::move(flow);
}

void Interpreter::backward(const Action& action, double global_tokens) {
  const PhaseScope phase("backward");
  const Key key{action.stage, action.microbatch};
  const Flow flow = std::move(flows_.at(key));
  flows_.erase(key);
  flow.output.backward(at::full({}, 1.0 / global_tokens, flow.output.options()));
  if (action.kind == ActionKind::backward_input) deferred_[key].swap(a_.step.deferred);
}

void Interpreter::weights(const Action& action) {
  const PhaseScope phase("backward");
  const auto found = deferred_.find({action.stage, action.microbatch});
  if (found == deferred_.end()) throw Error("action " + print(action) + " comes before its I");
  for (auto& thunk : found->second) {
    thunk();
    thunk = nullptr;  // frees (x, dy) of this weight
  }
  deferred_.erase(found);
}

void Interpreter::reduce() {
  const PhaseScope phase("backward");
  for (Parameter& p : a_.parameters) p.sink.finish();
  for (const auto& sync : a_.syncs) sync->flush();
}

Tensor Interpreter::evaluate(const Batch& batch) {
  const at::NoGradGuard no_grad;
  const PhaseScope phase("eval");
  Tensor sum;
  for (const Microbatch& micro : batch.microbatches) {
    BlockInput input = input_of(micro);
    for (const BlockSpec& block : a_.model_blocks) input.x = a_.blocks->run(block, input);
    sum = sum.defined() ? sum.add(input.x) : input.x;
  }
  return sum;
}

}  // namespace assay::train
