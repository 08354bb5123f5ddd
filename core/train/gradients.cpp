// The norm counts shards where the mesh cut a parameter and whole tensors once.
#include "core/train/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cmath>

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

}  // namespace

void take_gradients(Assembly& a) {
  for (size_t i = 0; i < a.shards.size(); ++i) a.shards[i].grad = a.parameters[i].sink.total();
}

double gradient_norm(Assembly& a) {
  const at::NoGradGuard no_grad;
  Tensors whole, cut_by_tp;
  for (size_t i = 0; i < a.shards.size(); ++i) {
    const bool cut = a.parameters[i].placement.cut_by(MeshDim::tp).has_value();
    (cut ? cut_by_tp : whole).push_back(a.shards[i].grad);
  }
  const double mine = sum_of_squares(whole, a.device);
  if (a.mesh.degree(MeshDim::tp) == 1) {
    return std::sqrt(mine + sum_of_squares(cut_by_tp, a.device));
  }
  const PhaseScope control("control");
  Tensor sum = at::zeros({1}, at::TensorOptions(at::kDouble).device(a.device));
  sum.fill_(sum_of_squares(cut_by_tp, a.device));
  a.groups(MeshDim::tp).all_reduce(sum).wait();
  return std::sqrt(mine + (a.device.is_meta() ? 0.0 : sum.item<double>()));
}

void clip_gradients(Assembly& a, double norm, double max_norm) {
  if (max_norm <= 0) return;
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return;
  const at::NoGradGuard no_grad;
  for (ParameterShard& shard : a.shards) shard.grad.mul_(factor);
}

}  // namespace assay::train
