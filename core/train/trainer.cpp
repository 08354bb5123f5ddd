// The order of a step: valid tokens, forward and backward, norm, clip, state of the model,
// optimizer (recipes 0.4).
#include "core/train/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <optional>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/train/gradients.h"
#include "core/train/ledger.h"
#include "core/train/virtual_time.h"

namespace assay::train {
namespace {

std::vector<int64_t> tokens_of(const Assembly& a) {
  auto* cp = a.strategy(MeshDim::cp);
  return cp ? cp->tokens(a.recipe.settings.batch.seq_len, a.mesh) : std::vector<int64_t>{};
}

void trace_parameters(Assembly& a, const std::string& what, Tensor Parameter::*tensor) {
  if (!a.trace) return;
  for (const Parameter& p : a.parameters) {
    if (p.present && holds_first_copy(a, p)) a.trace->add(what + p.spec.name, p.*tensor);
  }
}

double sum_over(Assembly& a, MeshGroup group, double value) {
  const PhaseScope control("control");
  Tensor sum = at::full({1}, value, at::TensorOptions(at::kDouble).device(a.device));
  a.groups(group).all_reduce(sum).wait();
  return a.device.is_meta() ? value : sum.item<double>();
}

}  // namespace

Trainer::Trainer(std::unique_ptr<Assembly> assembly)
    : assembly_(std::move(assembly)),
      batches_(assembly_->recipe.data, assembly_->recipe.settings.batch, assembly_->mesh,
               tokens_of(*assembly_), assembly_->recipe.settings.seed, assembly_->device),
      interpreter_(*assembly_) {}

// Over the ranks that hold other tokens; informs only, so it is outside every closed form of bytes.
double Trainer::global_sum(double value) { return sum_over(*assembly_, MeshGroup::loss, value); }

// Every rank learns what the ranks of the last stage have seen.
double Trainer::loss_total(const Tensor& loss_sum) {
  const bool known = loss_sum.defined() && !loss_sum.is_meta();
  const double sum = global_sum(known ? loss_sum.item<double>() : 0.0);
  return sum_over(*assembly_, MeshGroup::pp, sum);
}

StepResult Trainer::step(int64_t number, bool measure_activations) {
  Assembly& a = *assembly_;
  StepResult result;
  const double start = monotonic_s(), exposed = a.groups.exposed_s();
  const Batch batch = batches_.train(number);
  result.data_wait_s = monotonic_s() - start;

  const double tokens = global_sum(static_cast<double>(batch.valid_tokens));
  if (tokens <= 0) {
    throw InvalidRun("step " + std::to_string(number) +
                     " has no valid token [R-NOVALID]: every label is ignored");
  }
  if (a.trace) a.trace->begin();
  Ledger ledger;
  std::optional<LedgerScope> measuring;
  if (measure_activations) measuring.emplace(ledger);
  const StepParts parts = interpreter_.run(batch, tokens);
  measuring.reset();
  if (measure_activations) {
    result.saved_activation_bytes = ledger.bytes() / batches_.microbatches();
  }
  result.forward_s = parts.forward_s;
  result.backward_s = parts.backward_s;
  result.loss = loss_total(parts.loss_sum) / tokens;

  update(number, result);
  result.tokens = a.recipe.settings.batch.global_batch * a.recipe.settings.batch.seq_len;
  result.comm_exposed_s = a.groups.exposed_s() - exposed;
  result.wall_s = monotonic_s() - start;
  if (a.context.pipelined && !a.device.is_meta()) {
    result.virtual_step_s = virtual_step_s(a, interpreter_.action_cpu_s());
  }
  return result;
}

void Trainer::update(int64_t number, StepResult& result) {
  Assembly& a = *assembly_;
  const TrainSettings& settings = a.recipe.settings;
  const double start = monotonic_s();
  const at::NoGradGuard no_grad;
  const PhaseScope phase("optimizer");
  take_gradients(a);
  trace_parameters(a, "gradient ", &Parameter::gradient);
  result.grad_norm = gradient_norm(a);
  clip_gradients(a, result.grad_norm, settings.max_norm);
  a.recipe.model->before_update(
      {.sum = [&a](Tensor& t) { sum_over_tokens(a, t); }, .metrics = result.metrics});
  for (auto& [name, value] : result.metrics) value = sum_over(a, MeshGroup::pp, value);
  result.lr = settings.lr * settings.schedule.factor(number);
  StepContext context{.step = number + 1, .lr = result.lr};
  context.group = [&a](const ParameterShard&) -> Communicator& { return a.groups(MeshDim::tp); };
  a.recipe.optimizer->step(a.shards, context);
  trace_parameters(a, "weights ", &Parameter::master);
  publish(a);
  result.optimizer_s = monotonic_s() - start;
}

EvalResult Trainer::evaluate(int64_t batches) {
  const double start = monotonic_s();
  const int64_t count = std::min(batches, batches_.validation_batches());
  double loss = 0, tokens = 0, bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Batch batch = batches_.validation(i);
    const Tensor sum = interpreter_.evaluate(batch);
    if (sum.defined()) loss += sum.item<double>();
    tokens += static_cast<double>(batch.valid_tokens);
    bytes += static_cast<double>(batch.label_bytes);
  }
  EvalResult result;
  const double total = global_sum(tokens);
  result.tokens = static_cast<int64_t>(total);
  if (total > 0) {
    result.loss = sum_over(*assembly_, MeshGroup::pp, global_sum(loss)) / total;
    result.bytes_per_token = global_sum(bytes) / total;
  }
  result.wall_s = monotonic_s() - start;
  return result;
}

}  // namespace assay::train
