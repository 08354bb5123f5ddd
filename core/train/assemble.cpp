// assemble: the only place that knows in which order techniques meet a model.
//
//   stages      pp cuts the list of blocks; the others' parameters are not on this rank
//   parameters  declare -> tp cuts -> ep cuts -> dp_shard cuts what is stored
//               -> storage -> initial values -> dtypes
//   ops         kernels < compile < precision < cp < ep < tp      (inside to outside)
//   blocks      model < recompute < compile < cp < tp < dp_shard < dp_replicate < trace
//   gradients   sink -> dp_shard -> dp_replicate -> partial sums over tp -> clip -> optimizer
#include "core/train/assemble.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "assay/error.h"
#include "core/train/initialise.h"
#include "core/train/model_runner.h"
#include "core/train/parameter_info.h"
#include "core/train/recompute.h"

namespace assay::train {
namespace {

constexpr std::array kPlacementOrder{MeshDim::tp, MeshDim::ep};
constexpr std::array kOpsOrder{MeshDim::cp, MeshDim::ep, MeshDim::tp};
constexpr std::array kBlockOrder{MeshDim::cp, MeshDim::tp, MeshDim::dp_shard,
                                 MeshDim::dp_replicate};
constexpr std::array kSyncOrder{MeshDim::dp_shard, MeshDim::dp_replicate};

int64_t microbatches(const Assembly& a) {
  const BatchShape& batch = a.recipe.settings.batch;
  return batch.global_batch / (batch.micro_batch * a.mesh.size(MeshGroup::batch));
}

Pipeline single_stage(size_t blocks, int64_t microbatches) {
  Pipeline pipeline;
  pipeline.blocks.emplace_back(blocks);
  std::iota(pipeline.blocks[0].begin(), pipeline.blocks[0].end(), size_t{0});
  pipeline.rank_of_stage = {0};
  pipeline.actions = {accumulation_schedule(microbatches)};
  return pipeline;
}

void add_stage(Assembly& a, size_t index, const std::vector<BlockSpec>& model_blocks) {
  Stage& stage = a.stages.emplace_back();
  stage.index = static_cast<int64_t>(index);
  stage.first = index == 0;
  stage.last = index + 1 == a.pipeline.blocks.size();
  for (const size_t b : a.pipeline.blocks[index]) {
    stage.blocks.push_back(model_blocks.at(b));
    a.blocks.push_back(model_blocks[b]);
    for (const int w : model_blocks[b].weights) {
      const auto parameter = static_cast<size_t>(w);
      if (std::ranges::find(stage.parameters, parameter) == stage.parameters.end()) {
        stage.parameters.push_back(parameter);
      }
    }
  }
}

void cut_stages(Assembly& a) {
  const std::vector<BlockSpec> model_blocks = a.recipe.model->blocks();
  a.step.microbatches = microbatches(a);
  auto* pp = a.strategy(MeshDim::pp);
  a.pipeline = pp ? pp->pipeline(model_blocks, a.mesh.degree(MeshDim::pp), a.step.microbatches)
                  : single_stage(model_blocks.size(), a.step.microbatches);
  for (size_t s = 0; s < a.pipeline.blocks.size(); ++s) {
    if (a.pipeline.rank_of_stage.at(s) == a.mesh.coordinate(MeshDim::pp)) {
      add_stage(a, s, model_blocks);
    }
  }
}

// The engine sums gradients per use: a tied weight is used by two blocks.
std::vector<int> uses_on_this_rank(const Assembly& a) {
  std::vector<int> uses(a.parameters.size(), 0);
  for (const BlockSpec& block : a.blocks) {
    for (const int w : block.weights) ++uses[static_cast<size_t>(w)];
  }
  return uses;
}

void declare_and_place(Assembly& a) {
  for (const ParameterSpec& spec : a.recipe.model->parameters()) {
    Parameter& p = a.parameters.emplace_back();
    p.spec = spec;
    p.placement = ParameterPlacement(spec);
    for (const MeshDim dim : kPlacementOrder) {
      if (auto* s = a.strategy(dim)) s->place(p.placement, a.mesh);
    }
    p.stored = p.placement;
    if (auto* s = a.strategy(MeshDim::dp_shard)) s->shard(p.stored, a.mesh);
  }
  const auto uses = uses_on_this_rank(a);
  for (size_t i = 0; i < uses.size(); ++i) a.parameters[i].present = uses[i] > 0;
}

// Under a pipeline gradients wait for REDUCE_GRAD.
void gradient_final(Assembly& a, size_t parameter) {
  if (a.context.pipelined || a.syncs.empty()) return;
  GradientSync& sync = *a.syncs.front();
  if (sync.arms(a.step.microbatch, a.step.microbatches)) sync.ready(parameter);
}

void prepare_sinks(Assembly& a) {
  const auto uses = uses_on_this_rank(a);
  const auto options = at::TensorOptions(a.recipe.precision->dtypes().main_grad).device(a.device);
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    Parameter& p = a.parameters[i];
    if (!p.present) continue;
    p.sink.prepare(&a.step, uses[i], p.placement.box().size, options,
                   [&a, i] { gradient_final(a, i); });
  }
}

// One tensor serves as weight and master unless precision computes in another dtype than it keeps,
// and one as sink and gradient unless a strategy reduces the one into the other.
void allocate(Assembly& a) {
  const Dtypes dtypes = a.recipe.precision->dtypes();
  const auto empty = [&](const Box& box, at::ScalarType dtype) {
    return at::empty(box.size, at::TensorOptions(dtype).device(a.device));
  };
  for (const auto& [dim, strategy] : a.recipe.parallel) strategy->prepare(a.context);
  for (Parameter& p : a.parameters) {
    if (!p.present) continue;
    if (!p.weight.defined()) p.weight = empty(p.placement.box(), dtypes.compute);
    if (!p.master.defined()) {
      p.master = dtypes.master == dtypes.compute ? p.weight : empty(p.stored.box(), dtypes.master);
    }
    if (!p.gradient.defined()) {
      p.sink.hold();
      p.gradient = p.sink.total();
    }
  }
}

// Every parameter of the model, so that a name glob is judged alike on every rank.
void check_optimizer(const Assembly& a) {
  std::vector<ParameterInfo> model;
  for (const Parameter& p : a.parameters) {
    model.push_back(info_of(p, a.recipe.precision->dtypes()));
  }
  a.recipe.optimizer->check(model);
}

void initialise(Assembly& a) {
  const at::NoGradGuard no_grad;
  const Dtypes dtypes = a.recipe.precision->dtypes();
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    Parameter& p = a.parameters[i];
    if (!p.present) continue;
    p.master.copy_(
        initial_value(p.spec, p.stored.box(), a.recipe.settings.seed, dtypes.master, a.device));
    ParameterShard& shard = a.shards.emplace_back();
    a.parameter_of.push_back(i);
    shard.name = p.spec.name;
    const bool comes_and_goes = p.stored.cut_by(MeshDim::dp_shard).has_value();
    shard.weight = comes_and_goes ? p.master : p.weight;
    shard.master = p.master;
    shard.decay = p.spec.shape.size() > 1;
    const ParameterInfo info = info_of(p, dtypes);
    for (const StateSlot& slot : a.recipe.optimizer->state_spec(info)) {
      shard.state.push_back(make_state(slot, info, a.device));
    }
  }
  publish(a);
}

void prepare_model(Assembly& a) {
  a.recipe.model->prepare({.blocks = a.blocks,
                           .microbatches = a.step.microbatches,
                           .token_ranks = a.mesh.size(MeshGroup::loss) * sequence_parts(a),
                           .device = a.device});
  const bool first = a.mesh.index(MeshGroup::loss) == 0 && a.mesh.coordinate(MeshDim::tp) == 0;
  for (const auto& [name, tensor] : a.recipe.model->buffers()) {
    const Shape shape = tensor.sizes().vec();
    a.kept.push_back({"model/" + name, shape, whole(shape), tensor, first});
  }
}

void stack_ops(Assembly& a) {
  a.ops = make_eager_ops();
  a.ops = a.recipe.compile->wrap_ops(std::move(a.ops), a.context);    // plain local tensors
  a.ops = a.recipe.precision->wrap_ops(std::move(a.ops), a.context);  // casts and scales
  for (const MeshDim dim : kOpsOrder) {
    if (auto* s = a.strategy(dim)) a.ops = s->wrap_ops(std::move(a.ops), a.context);
  }
}

void stack_blocks(Assembly& a) {
  a.runner = model_runner(*a.recipe.model, *a.ops, a.parameters);
  a.runner = recompute_region(std::move(a.runner), a.recipe.memory, a.context);
  a.runner = a.recipe.compile->wrap_block(std::move(a.runner), a.context);
  for (const MeshDim dim : kBlockOrder) {
    if (auto* s = a.strategy(dim)) a.runner = s->wrap_block(std::move(a.runner), a.context);
  }
  if (a.recipe.settings.trace == TraceLevel::off) return;
  a.trace = std::make_unique<Trace>(a.recipe.settings.trace, a.context, sequence_parts(a));
  a.runner = a.trace->wrap(std::move(a.runner));
}

void chain_syncs(Assembly& a) {
  for (const MeshDim dim : kSyncOrder) {
    auto* s = a.strategy(dim);
    if (auto sync = s ? s->gradient_sync(a.context) : nullptr) a.syncs.push_back(std::move(sync));
  }
}

}  // namespace

int64_t sequence_parts(const Assembly& a) {
  int64_t parts = 1;
  for (const auto& [dim, strategy] : a.recipe.parallel) parts *= strategy->sequence_parts(a.mesh);
  return parts;
}

void sum_over_tokens(Assembly& a, Tensor& tensor) {
  const PhaseScope control("control");
  a.groups(MeshGroup::loss).all_reduce(tensor).wait();
  if (sequence_parts(a) > 1) a.groups(MeshDim::tp).all_reduce(tensor).wait();
}

void publish(Assembly& a) {
  const at::NoGradGuard no_grad;
  if (auto* s = a.strategy(MeshDim::dp_shard)) return s->publish(a.context);
  for (Parameter& p : a.parameters) {
    if (p.present && !p.master.is_same(p.weight)) p.weight.copy_(p.master);
  }
}

Tensor make_state(const StateSlot& slot, const ParameterInfo& info, at::Device device) {
  const auto options = at::TensorOptions(slot.dtype).device(device);
  switch (slot.shape.kind) {
    case SlotShape::same:
      return at::zeros(info.shard_shape, options);
    case SlotShape::square: {
      const int64_t n = info.shape.at(static_cast<size_t>(slot.shape.dim));
      return at::zeros({n, n}, options);
    }
    case SlotShape::scalar:
      return at::zeros({}, options);
  }
  throw Error("state slot '" + slot.name + "' of " + info.name + " has an unknown shape");
}

Assembly::Assembly(Recipe r, int rank, GroupSpec group_defaults, at::Device d)
    : recipe(std::move(r)),
      device(d),
      mesh(recipe.degrees, rank),
      groups(mesh, recipe.comm, std::move(group_defaults)),
      context{mesh,       groups, *recipe.model,         *recipe.precision,
              parameters, blocks, recipe.degrees.pp > 1, step,
              counters,   device, recipe.settings.seed,  &kept} {}

ParallelStrategy* Assembly::strategy(MeshDim dim) const {
  const auto found = recipe.parallel.find(dim);
  return found == recipe.parallel.end() ? nullptr : found->second.get();
}

const ActionList& Assembly::actions() const {
  return pipeline.actions.at(static_cast<size_t>(mesh.coordinate(MeshDim::pp)));
}

std::unique_ptr<Assembly> assemble(Recipe recipe, int rank, GroupSpec group_defaults,
                                   at::Device device) {
  auto a = std::make_unique<Assembly>(std::move(recipe), rank, std::move(group_defaults), device);
  cut_stages(*a);
  declare_and_place(*a);
  check_optimizer(*a);
  prepare_sinks(*a);
  allocate(*a);
  initialise(*a);
  prepare_model(*a);
  stack_ops(*a);
  stack_blocks(*a);
  chain_syncs(*a);
  a->groups.reset_traffic();  // what is counted belongs to steps
  return a;
}

}  // namespace assay::train
