// The actions of one step, one function per kind.
#include "core/train/interpreter.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/train/gradients.h"

namespace assay::train {
namespace {

// The first block's x: without an input that requires grad no autograd node would exist.
Tensor anchor(const Assembly& a) {
  const auto options = at::TensorOptions(a.recipe.precision->dtypes().compute).device(a.device);
  return at::empty({0}, options).requires_grad_();
}

const Microbatch& microbatch(const Batch& batch, const Action& action) {
  return batch.microbatches.at(static_cast<size_t>(action.microbatch));
}

template <class Map>
auto take(Map& map, const typename Map::key_type& key, const Action& action, const char* lacks) {
  const auto found = map.find(key);
  if (found == map.end()) throw Error("action " + print(action) + " comes before " + lacks);
  auto value = std::move(found->second);
  map.erase(found);
  return value;
}

bool is_backward(ActionKind kind) {
  using enum ActionKind;
  return kind == backward || kind == backward_input || kind == send_backward ||
         kind == receive_backward || kind == backward_weight || kind == reduce_gradients;
}

}  // namespace

Interpreter::Interpreter(Assembly& assembly)
    : a_(assembly), residual_parts_(sequence_parts(assembly)) {}

StepParts Interpreter::run(const Batch& batch, double global_tokens) {
  StepParts parts;
  flows_.clear();
  inputs_.clear();
  gradients_.clear();
  input_gradients_.clear();
  deferred_.clear();
  action_cpu_s_.clear();
  for (Parameter& p : a_.parameters) {
    if (p.present) p.sink.reset();
  }
  for (const Action& action : a_.actions()) {
    const double start = monotonic_s(), cpu = thread_cpu_s();
    const bool back = is_backward(action.kind);
    const PhaseScope phase(back ? "backward" : "forward");
    announce(action);
    perform(action, batch, global_tokens, parts);
    (back ? parts.backward_s : parts.forward_s) += monotonic_s() - start;
    action_cpu_s_.push_back(thread_cpu_s() - cpu);
  }
  finish_reductions();
  for (Transfer& t : sent_) t.work.wait();
  sent_.clear();
  return parts;
}

void Interpreter::announce(const Action& action) {
  a_.step.microbatch = action.microbatch;
  a_.step.deferring = action.kind == ActionKind::backward_input;
}

void Interpreter::perform(const Action& action, const Batch& batch, double global_tokens,
                          StepParts& parts) {
  const Key key{action.stage, action.microbatch};
  switch (action.kind) {
    case ActionKind::forward:
      return forward(action, batch, parts);
    case ActionKind::backward:
    case ActionKind::backward_input:
      return backward(action, global_tokens);
    case ActionKind::backward_weight:
      return weights(action);
    case ActionKind::send_forward:
      return send(flows_.at(key).output, action.stage + 1);
    case ActionKind::receive_forward:
      return receive(key, action.stage - 1, batch, inputs_);
    case ActionKind::send_backward:
      return send(take(input_gradients_, key, action, "its B or I"), action.stage - 1);
    case ActionKind::receive_backward:
      return receive(key, action.stage + 1, batch, gradients_);
    case ActionKind::unshard:
    case ActionKind::reshard:
      if (auto* s = a_.strategy(MeshDim::dp_shard)) {
        action.kind == ActionKind::unshard ? s->unshard(stage(action.stage).blocks)
                                           : s->reshard(stage(action.stage).blocks);
      }
      return;
    case ActionKind::reduce_gradients:
      return reduce(action);
  }
}

const Stage& Interpreter::stage(int64_t index) const {
  const auto found = std::ranges::find(a_.stages, index, &Stage::index);
  if (found == a_.stages.end()) {
    throw Error("stage " + std::to_string(index) + " is not on this pipeline rank");
  }
  return *found;
}

int Interpreter::rank_of(int64_t stage) const {
  return a_.pipeline.rank_of_stage.at(static_cast<size_t>(stage));
}

bool Interpreter::here(int64_t stage) const {
  return rank_of(stage) == a_.mesh.coordinate(MeshDim::pp);
}

BlockInput Interpreter::input_of(const Microbatch& micro) const {
  BlockInput input;
  input.ids = micro.ids;
  input.labels = micro.labels;
  input.positions = micro.positions;
  input.documents = micro.documents;
  return input;
}

// What one stage hands to the next: (B, S / parts, D).
Tensor Interpreter::boundary(const Microbatch& micro) const {
  const auto options = at::TensorOptions(a_.recipe.precision->dtypes().compute).device(a_.device);
  return at::empty({micro.ids.size(0), micro.ids.size(1) / residual_parts_,
                    a_.recipe.model->facts().at("hidden")},
                   options);
}

Tensor Interpreter::through(const Stage& stage, BlockInput input) {
  for (const BlockSpec& block : stage.blocks) input.x = a_.runner->run(block, input);
  return input.x;
}

void Interpreter::send(const Tensor& tensor, int64_t to_stage) {
  const Tensor message = tensor.detach().contiguous();
  sent_.push_back({a_.groups(MeshDim::pp).send(message, rank_of(to_stage)), message});
}

void Interpreter::receive(const Key& key, int64_t from_stage, const Batch& batch,
                          std::map<Key, Transfer>& into) {
  Tensor tensor = boundary(batch.microbatches.at(static_cast<size_t>(key.second)));
  Work work = a_.groups(MeshDim::pp).recv(tensor, rank_of(from_stage));
  into[key] = {std::move(work), tensor};
}

void Interpreter::forward(const Action& action, const Batch& batch, StepParts& parts) {
  const Key key{action.stage, action.microbatch};
  const Stage& s = stage(action.stage);
  BlockInput input = input_of(microbatch(batch, action));
  input.microbatch = action.microbatch;
  if (s.first) {
    input.x = anchor(a_);
  } else {
    Transfer arrived = take(inputs_, key, action, "its input");
    arrived.work.wait();
    input.x = arrived.tensor.requires_grad_();
  }
  Flow flow{input.x, through(s, input)};
  if (s.last) {
    const Tensor loss = flow.output.detach();
    parts.loss_sum = parts.loss_sum.defined() ? parts.loss_sum.add(loss) : loss;
  } else if (here(action.stage + 1)) {
    inputs_[{action.stage + 1, action.microbatch}] = {Work(), flow.output.detach()};
  }
  flows_[key] = std::move(flow);
  if (!a_.context.pipelined) return;
  int64_t& peak = a_.counters["pipeline.peak_live_chunks"];
  peak = std::max(peak, static_cast<int64_t>(flows_.size() + deferred_.size()));
}

void Interpreter::backward(const Action& action, double global_tokens) {
  const Key key{action.stage, action.microbatch};
  const Stage& s = stage(action.stage);
  const Flow flow = take(flows_, key, action, "its F");
  if (s.last) {
    flow.output.backward(at::full({}, 1.0 / global_tokens, flow.output.options()));
  } else {
    Transfer arrived = take(gradients_, key, action, "the gradient of its output");
    arrived.work.wait();
    flow.output.backward(arrived.tensor);
  }
  if (!s.first && here(action.stage - 1)) {
    gradients_[{action.stage - 1, action.microbatch}] = {Work(), flow.input.grad()};
  } else if (!s.first) {
    input_gradients_[key] = flow.input.grad();
  }
  if (action.kind == ActionKind::backward_input) deferred_[key].swap(a_.step.deferred);
}

void Interpreter::weights(const Action& action) {
  auto thunks = take(deferred_, {action.stage, action.microbatch}, action, "its I");
  for (auto& thunk : thunks) {
    thunk();
    thunk = nullptr;  // frees (x, dy) of this weight
  }
}

void Interpreter::reduce(const Action& action) {
  const Stage& s = stage(action.stage);
  for (const size_t index : s.parameters) {
    Parameter& p = a_.parameters[index];
    if (p.gradient.is_same(p.sink.total())) p.sink.finish();  // else a sync hands it on
  }
  if (!a_.syncs.empty()) a_.syncs.front()->flush(s.parameters);
}

// Each sync of the chain starts where the one before it has left complete sums.
void Interpreter::finish_reductions() {
  const PhaseScope phase("backward");
  for (size_t i = 0; i < a_.syncs.size(); ++i) {
    if (i > 0) a_.syncs[i]->flush(a_.parameter_of);
    a_.syncs[i]->wait();
  }
  sum_partial_gradients(a_);
}

Tensor Interpreter::evaluate(const Batch& batch) {
  const at::NoGradGuard no_grad;
  const PhaseScope phase("eval");
  Tensor sum;
  for (const Microbatch& micro : batch.microbatches) {
    Tensor previous;
    for (const Stage& s : a_.stages) {
      BlockInput input = input_of(micro);
      input.x = s.first ? anchor(a_) : previous;
      if (!s.first && !here(s.index - 1)) {
        input.x = boundary(micro);
        a_.groups(MeshDim::pp).recv(input.x, rank_of(s.index - 1)).wait();
      }
      previous = through(s, input);
      if (!s.last && !here(s.index + 1)) send(previous, s.index + 1);
      if (s.last) sum = sum.defined() ? sum.add(previous) : previous;
    }
  }
  for (Transfer& t : sent_) t.work.wait();
  sent_.clear();
  return sum;
}

}  // namespace assay::train
