// assemble: the only place that knows in which order techniques meet a model.
//
//   parameters  declare -> tp cuts -> ep cuts -> dp_shard cuts -> initial values -> dtypes
//   ops         kernels < compile < precision < cp < ep < tp      (inside to outside)
//   blocks      model < recompute < compile < cp < tp < dp_shard < dp_replicate
//   gradients   sink -> dp_shard -> dp_replicate -> clip -> optimizer
#include "core/train/assemble.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <utility>

#include "core/train/initialise.h"
#include "core/train/model_runner.h"
#include "core/train/recompute.h"

namespace assay::train {
namespace {

constexpr std::array kPlacementOrder{MeshDim::tp, MeshDim::ep, MeshDim::dp_shard};
constexpr std::array kOpsOrder{MeshDim::cp, MeshDim::ep, MeshDim::tp};
constexpr std::array kBlockOrder{MeshDim::cp, MeshDim::tp, MeshDim::dp_shard,
                                 MeshDim::dp_replicate};
constexpr std::array kSyncOrder{MeshDim::dp_shard, MeshDim::dp_replicate};

ParallelStrategy* strategy(const Recipe& recipe, MeshDim dim) {
  const auto found = recipe.parallel.find(dim);
  return found == recipe.parallel.end() ? nullptr : found->second.get();
}

// The engine sums gradients per use: a tied weight is used by two blocks.
std::vector<int> uses_of(const std::vector<BlockSpec>& blocks, size_t parameters) {
  std::vector<int> uses(parameters, 0);
  for (const BlockSpec& block : blocks) {
    for (const int w : block.weights) ++uses[static_cast<size_t>(w)];
  }
  return uses;
}

Tensor as(const Tensor& value, at::ScalarType dtype) {
  return value.scalar_type() == dtype ? value : value.to(dtype);
}

void declare_and_place(Assembly& a) {
  for (const ParameterSpec& spec : a.recipe.model->parameters()) {
    Parameter& p = a.parameters.emplace_back();
    p.spec = spec;
    p.placement = ParameterPlacement(spec);
    for (const MeshDim dim : kPlacementOrder) {
      if (auto* s = strategy(a.recipe, dim)) s->place(p.placement, a.mesh);
    }
  }
}

void prepare_sink(Assembly& a, size_t index, int uses) {
  Parameter& p = a.parameters[index];
  const Dtypes dtypes = a.recipe.precision->dtypes();
  const auto options = at::TensorOptions(dtypes.main_grad).device(a.device);
  p.sink.prepare(&a.step, uses, at::empty(p.placement.box().size, options), [&a, index] {
    for (const auto& sync : a.syncs) sync->ready(index);
  });
}

ParameterInfo info_of(const Parameter& p, const Dtypes& dtypes) {
  return {p.spec.name, p.spec.shape,           p.spec.axes,
          p.spec.role, p.placement.box().size, dtypes.param};
}

// Every parameter of the model, so that a name glob is judged alike on every rank.
void check_optimizer(const Assembly& a) {
  std::vector<ParameterInfo> model;
  for (const Parameter& p : a.parameters) {
    model.push_back(info_of(p, a.recipe.precision->dtypes()));
  }
  a.recipe.optimizer->check(model);
}

// The weight that primitives read and the master that the optimizer updates: one tensor unless
// precision computes in another dtype than it keeps.
void initialise(Assembly& a) {
  check_optimizer(a);
  const Dtypes dtypes = a.recipe.precision->dtypes();
  const auto uses = uses_of(a.model_blocks, a.parameters.size());
  for (size_t i = 0; i < a.parameters.size(); ++i) {
    Parameter& p = a.parameters[i];
    const Tensor value =
        initial_value(p.spec, p.placement.box(), a.recipe.settings.seed, dtypes.master, a.device);
    p.weight = as(as(value, dtypes.param), dtypes.compute);
    prepare_sink(a, i, uses[i]);
    ParameterShard& shard = a.shards.emplace_back();
    shard.name = p.spec.name;
    shard.weight = p.weight;
    shard.master = dtypes.master == dtypes.compute ? p.weight : value;
    shard.decay = p.spec.shape.size() > 1;
    const ParameterInfo info = info_of(p, dtypes);
    for (const StateSlot& slot : a.recipe.optimizer->state_spec(info)) {
      shard.state.push_back(make_state(slot, info, a.device));
    }
  }
}

void stack_ops(Assembly& a) {
  a.ops = make_eager_ops();
  a.ops = a.recipe.compile->wrap_ops(std::move(a.ops), a.context);    // plain local tensors
  a.ops = a.recipe.precision->wrap_ops(std::move(a.ops), a.context);  // casts and scales
  for (const MeshDim dim : kOpsOrder) {
    if (auto* s = strategy(a.recipe, dim)) a.ops = s->wrap_ops(std::move(a.ops), a.context);
  }
}

void stack_blocks(Assembly& a) {
  a.blocks = model_runner(*a.recipe.model, *a.ops, a.parameters);
  a.blocks = recompute_region(std::move(a.blocks), a.recipe.memory, a.context);
  a.blocks = a.recipe.compile->wrap_block(std::move(a.blocks), a.context);
  for (const MeshDim dim : kBlockOrder) {
    if (auto* s = strategy(a.recipe, dim)) a.blocks = s->wrap_block(std::move(a.blocks), a.context);
  }
}

void order_step(Assembly& a) {
  const BatchShape& batch = a.recipe.settings.batch;
  const int64_t microbatches =
      batch.global_batch / (batch.micro_batch * a.mesh.size(MeshGroup::batch));
  a.actions = accumulation_schedule(microbatches);
  if (auto* s = strategy(a.recipe, MeshDim::pp)) {
    const auto schedule = s->schedule(a.context);
    const auto rank = static_cast<size_t>(a.mesh.coordinate(MeshDim::pp));
    a.actions = schedule->actions(a.mesh.degree(MeshDim::pp), microbatches).at(rank);
  }
  for (const MeshDim dim : kSyncOrder) {
    auto* s = strategy(a.recipe, dim);
    if (auto sync = s ? s->gradient_sync(a.context) : nullptr) a.syncs.push_back(std::move(sync));
  }
}

}  // namespace

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
      context{mesh, groups,   *recipe.model, *recipe.precision,   parameters,
              step, counters, device,        recipe.settings.seed},
      model_blocks(recipe.model->blocks()) {}

std::unique_ptr<Assembly> assemble(Recipe recipe, int rank, GroupSpec group_defaults,
                                   at::Device device) {
  auto a = std::make_unique<Assembly>(std::move(recipe), rank, std::move(group_defaults), device);
  declare_and_place(*a);
  initialise(*a);
  stack_ops(*a);
  stack_blocks(*a);
  order_step(*a);
  return a;
}

}  // namespace assay::train
