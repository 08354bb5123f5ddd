// Counts are written to their place, never added, so that a recomputed forward changes nothing.
#include "balance.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>

#include "../decoder/decoder.h"
#include "assay/primitive.h"

namespace assay::models {
namespace {

Tensor aux_loss(const Routing& r, const MoeOptions& options) {
  const Tensor of_token = r.scores.div(r.scores.sum(-1, /*keepdim=*/true));
  const auto pairs = static_cast<double>(r.experts.numel());
  const Tensor shares = r.counts.to(r.scores.scalar_type()).div(pairs);
  const double scale = options.aux_weight * static_cast<double>(r.scores.size(1));
  return of_token.mean(0).mul(shares).sum().mul(scale);
}

Tensor z_loss(const Routing& r, double weight) {
  return r.logits.logsumexp(-1).square().mean().mul(weight);
}

/// x, whose backward also sends share * d loss to where `loss` comes from.
Tensor with_gradient_of(const Tensor& x, const Tensor& loss, double share) {
  return primitive(
      {x, loss}, [](const Tensors& in, Tensors&) { return Tensors{in[0].view_as(in[0])}; },
      [share, shape = loss.detach()](const Tensors&, const Tensors& dy) {
        return Tensors{dy[0], at::full_like(shape, share)};
      })[0];
}

}  // namespace

void Balance::prepare(const ModelRun& run, int64_t model_layers, int64_t experts) {
  mixtures_ = 0;
  for (int64_t l = 0; l < model_layers; ++l) mixtures_ += is_mixture(options_, l) ? 1 : 0;
  row_of_.clear();
  for (const BlockSpec& block : run.blocks) {
    if (block.kind != BlockSpec::Kind::layer || !is_mixture(options_, block.layer)) continue;
    row_of_.emplace(block.layer, static_cast<int64_t>(row_of_.size()));
  }
  share_ = 1.0 / static_cast<double>(run.microbatches * run.token_ranks);
  const auto layers = static_cast<int64_t>(row_of_.size());
  const auto options = at::TensorOptions(at::kDouble).device(run.device);
  bias_ = at::zeros({layers, experts}, options);
  notes_ = at::zeros({layers, run.microbatches, experts + 2}, options);
}

Tensor Balance::bias(int64_t layer) const {
  const auto row = row_of_.find(layer);
  if (options_.balance != "bias" || row == row_of_.end()) return {};
  return bias_.select(0, row->second);
}

Tensor Balance::note(const Routing& r, int64_t layer, int64_t microbatch) const {
  const auto row = row_of_.find(layer);
  if (microbatch < 0 || row == row_of_.end()) return r.gates;
  const Tensor here = notes_.select(0, row->second).select(0, microbatch);
  const int64_t experts = r.counts.numel();
  Tensor gates = r.gates;
  const auto add = [&](const Tensor& loss, int64_t place) {
    gates = with_gradient_of(gates, loss, share_);
    const at::NoGradGuard no_grad;
    here.select(0, place).copy_(loss);
  };
  {
    const at::NoGradGuard no_grad;
    here.narrow(0, 0, experts).copy_(r.counts);
  }
  if (options_.balance == "aux") add(aux_loss(r, options_), experts);
  if (options_.z_weight > 0) add(z_loss(r, options_.z_weight), experts + 1);
  return gates;
}

void Balance::update_bias(const Tensor& counts) {
  const Tensor missing = counts.mean(-1, /*keepdim=*/true).sub(counts).sign();
  Tensor change = missing.mul(options_.bias_rate);
  if (options_.bias_center) change = change.sub(change.mean(-1, /*keepdim=*/true));
  bias_.add_(change);
}

void Balance::update(const StepHook& hook) {
  const at::NoGradGuard no_grad;
  Tensor total = notes_.sum(1);
  hook.sum(total);
  notes_.zero_();
  const int64_t experts = bias_.size(1);
  const Tensor counts = total.narrow(1, 0, experts);
  if (options_.balance == "bias") update_bias(counts);
  if (total.is_meta()) return;
  const Tensor losses = total.narrow(1, experts, 2).sum(0).mul(share_);
  const Tensor load = counts.amax(-1).div(counts.mean(-1)).sum();
  hook.metrics["moe_load"] = load.item<double>() / static_cast<double>(mixtures_);
  if (options_.balance == "aux") hook.metrics["moe_aux_loss"] = losses[0].item<double>();
  if (options_.z_weight > 0) hook.metrics["moe_z_loss"] = losses[1].item<double>();
}

std::map<std::string, Tensor> Balance::buffers() const {
  std::map<std::string, Tensor> named;
  if (options_.balance != "bias") return named;
  for (const auto& [layer, row] : row_of_) {
    named[layer_name(layer) + "mlp.gate.e_score_correction_bias"] = bias_.select(0, row);
  }
  return named;
}

}  // namespace assay::models
