// The norm counts every element on the one rank that comes first among those that hold it.
#include "core/train/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <map>

namespace assay::train {
namespace {

double sum_of_squares(const Tensors& gradients, at::Device device) {
  Tensors norms;
  for (const Tensor& g : gradients) {
    norms.push_back(at::linalg_vector_norm(g, 2, {}, false, at::kDouble));
  }
  if (norms.empty() || device.is_meta()) return 0.0;
  return at::stack(norms).square_().sum().item<double>();
}

void sum_over(Communicator& group, const std::vector<Parameter*>& parameters,
              at::ScalarType dtype) {
  Tensors flat;
  for (const Parameter* p : parameters) flat.push_back(p->gradient.flatten().to(dtype));
  Tensor message = at::cat(flat);
  group.all_reduce(message).wait();
  int64_t offset = 0;
  for (Parameter* p : parameters) {
    p->gradient.copy_(message.narrow(0, offset, p->gradient.numel()).view(p->gradient.sizes()));
    offset += p->gradient.numel();
  }
}

}  // namespace

bool holds_first_copy(const Assembly& a, const Parameter& p) {
  if (a.mesh.coordinate(MeshDim::dp_replicate) != 0) return false;
  const MeshGroup shards = p.placement.shard_group();
  const bool sharded = p.stored.cut_by(MeshDim::dp_shard).has_value();
  if (!sharded && a.mesh.index(shards) != 0) return false;
  if (shards == MeshGroup::efsdp) return true;  // tp is one of its dimensions
  return p.placement.cut_by(MeshDim::tp) || a.mesh.coordinate(MeshDim::tp) == 0;
}

void sum_partial_gradients(Assembly& a) {
  const at::NoGradGuard no_grad;
  std::map<MeshGroup, std::vector<Parameter*>> by_group;
  for (Parameter& p : a.parameters) {
    const auto& group = p.placement.partial_over;
    if (p.present && group && a.mesh.size(*group) > 1) by_group[*group].push_back(&p);
  }
  for (const auto& [group, parameters] : by_group) {
    sum_over(a.groups(group), parameters, a.recipe.precision->dtypes().reduce);
  }
}

void take_gradients(Assembly& a) {
  for (size_t i = 0; i < a.shards.size(); ++i) {
    a.shards[i].grad = a.parameters[a.parameter_of[i]].gradient;
  }
}

double gradient_norm(Assembly& a) {
  const at::NoGradGuard no_grad;
  Tensors mine;
  for (const Parameter& p : a.parameters) {
    if (p.present && p.gradient.numel() > 0 && holds_first_copy(a, p)) mine.push_back(p.gradient);
  }
  const PhaseScope control("control");
  Tensor sum = at::full({1}, sum_of_squares(mine, a.device),
                        at::TensorOptions(at::kDouble).device(a.device));
  a.groups(MeshGroup::world).all_reduce(sum).wait();
  return a.device.is_meta() ? 0.0 : std::sqrt(sum.item<double>());
}

void clip_gradients(Assembly& a, double norm, double max_norm) {
  if (max_norm <= 0) return;
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return;
  const at::NoGradGuard no_grad;
  for (ParameterShard& shard : a.shards) shard.grad.mul_(factor);
}

}  // namespace assay::train
