// The model and its step; see the header.
#include "plain_llama.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "fused_adamw.h"

namespace assay::bench {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor rows_of(const Tensor& x) { return x.reshape({-1, x.size(-1)}); }

struct Norm : torch::autograd::Function<Norm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& scale,
                        double eps) {
    const Tensor rstd = x.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
    context->save_for_backward({x, scale, rstd});
    return x.mul(rstd).mul_(scale);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &dy = gradients[0], &x = saved[0], &scale = saved[1], &rstd = saved[2];
    const Tensor unit = x.mul(rstd), dunit = dy.mul(scale);
    const Tensor along = dunit.mul(unit).mean(-1, /*keepdim=*/true);
    return {dunit.sub(unit.mul(along)).mul_(rstd), rows_of(unit.mul(dy)).sum(0), Tensor()};
  }
};

Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  const Tensor heads = x.view({x.size(0), x.size(1), -1, 2, cos.size(-1)});
  const Tensor a = heads.select(3, 0), b = heads.select(3, 1);
  return at::cat({a.mul(cos).sub_(b.mul(sin)), b.mul(cos).add_(a.mul(sin))}, -1).view(x.sizes());
}

struct Rotate : torch::autograd::Function<Rotate> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& cos,
                        const Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotated(x, cos, sin);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {rotated(gradients[0].contiguous(), saved[0], saved[1].neg()), Tensor(), Tensor()};
  }
};

// Keeps no logits: backward computes them again, as the recipe's loss does.
struct CrossEntropy : torch::autograd::Function<CrossEntropy> {
  static Tensor forward(AutogradContext* context, const Tensor& hidden, const Tensor& head,
                        const Tensor& labels) {
    const Tensor logits = hidden.mm(head.t());
    const Tensor target = logits.gather(1, labels.unsqueeze(1)).squeeze(1);
    const Tensor max = logits.amax(-1);
    const Tensor sum = logits.sub(max.unsqueeze(-1)).exp_().sum(-1);
    context->save_for_backward({hidden, head, labels, max, sum});
    return sum.log().add(max).sub(target).mean();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &hidden = saved[0], &head = saved[1], &max = saved[3], &sum = saved[4];
    const Tensor each = gradients[0].div(static_cast<double>(hidden.size(0)));
    Tensor dlogits = hidden.mm(head.t()).sub_(max.unsqueeze(-1)).exp_();
    dlogits.mul_(each.div(sum).unsqueeze(-1));
    const Tensor index = saved[2].unsqueeze(1);
    dlogits.scatter_add_(1, index, each.neg().expand(index.sizes()));
    return {dlogits.mm(head), dlogits.t().mm(hidden), Tensor()};
  }
};

Tensor heads_of(const Tensor& x, int64_t head_dim) {
  return x.view({x.size(0), x.size(1), -1, head_dim}).transpose(1, 2);
}

Tensor linear(const Tensor& x, const Tensor& w) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = w.size(0);
  return rows_of(x).mm(w.t()).view(shape);
}

}  // namespace

Tensor plain_norm(const Tensor& x, const Tensor& scale, double eps) {
  return Norm::apply(x, scale, eps);
}

PlainLlama::PlainLlama(const std::map<std::string, Tensor>& weights, const PlainOptions& options)
    : options_(options) {
  const auto take = [&](const std::string& name) {
    parameters_.push_back(weights.at(name).detach().clone().requires_grad_());
    first_moments_.push_back(at::zeros_like(parameters_.back()));
    second_moments_.push_back(at::zeros_like(parameters_.back()));
    decay_.push_back(parameters_.back().dim() > 1 ? 0.1 : 0.0);
    return parameters_.back();
  };
  embedding_ = take("model.embed_tokens.weight");
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    Layer layer;
    layer.input_norm = take(at + "input_layernorm.weight");
    layer.q = take(at + "self_attn.q_proj.weight");
    layer.k = take(at + "self_attn.k_proj.weight");
    layer.v = take(at + "self_attn.v_proj.weight");
    layer.o = take(at + "self_attn.o_proj.weight");
    layer.post_norm = take(at + "post_attention_layernorm.weight");
    layer.gate = take(at + "mlp.gate_proj.weight");
    layer.up = take(at + "mlp.up_proj.weight");
    layer.down = take(at + "mlp.down_proj.weight");
    layers_.push_back(layer);
  }
  final_norm_ = take("model.norm.weight");
  head_ = take("lm_head.weight");
}

Tensor PlainLlama::layer(const Tensor& x, const Layer& w, const Tensor& cos,
                         const Tensor& sin) const {
  const Tensor normed = Norm::apply(x, w.input_norm, options_.eps);
  const Tensor q = Rotate::apply(linear(normed, w.q), cos, sin);
  const Tensor k = Rotate::apply(linear(normed, w.k), cos, sin);
  const int64_t dh = options_.head_dim;
  const Tensor mixed = std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
      heads_of(q, dh), heads_of(k, dh), heads_of(linear(normed, w.v), dh), /*dropout_p=*/0.0,
      /*is_causal=*/true, /*attn_mask=*/{}, 1.0 / std::sqrt(static_cast<double>(dh))));
  const Tensor h = x.add(linear(mixed.transpose(1, 2).flatten(2), w.o));
  const Tensor again = Norm::apply(h, w.post_norm, options_.eps);
  return h.add(linear(at::silu(linear(again, w.gate)).mul(linear(again, w.up)), w.down));
}

Tensor PlainLlama::loss(const Tensor& ids, const Tensor& labels) const {
  const auto wide = at::TensorOptions(at::kDouble);
  const int64_t half = options_.head_dim / 2;
  const Tensor frequency = at::full({}, options_.theta, wide)
                               .pow(at::arange(half, wide).div(-static_cast<double>(half)));
  const Tensor angle = at::arange(ids.size(1), wide).unsqueeze(1).mul(frequency);
  const std::vector<int64_t> table{1, ids.size(1), 1, half};
  const Tensor cos = angle.cos().to(at::kFloat).view(table);
  const Tensor sin = angle.sin().to(at::kFloat).view(table);
  Tensor x = embedding_.index_select(0, ids.flatten())
                 .view({ids.size(0), ids.size(1), embedding_.size(1)});
  for (const Layer& w : layers_) x = layer(x, w, cos, sin);
  const Tensor last = Norm::apply(x, final_norm_, options_.eps);
  return CrossEntropy::apply(rows_of(last), head_, labels.flatten());
}

void PlainLlama::update(int64_t number) {
  const at::NoGradGuard no_grad;
  std::vector<Tensor> norms;
  for (const Tensor& p : parameters_) {
    norms.push_back(at::linalg_vector_norm(p.grad(), 2, {}, false, at::kDouble));
  }
  const double norm = std::sqrt(at::stack(norms).square_().sum().item<double>());
  const double factor = options_.max_norm / (norm + 1e-6);
  std::vector<optim::FusedAdamWShard> shards;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor grad = parameters_[i].grad();
    if (factor < 1) grad.mul_(factor);
    shards.push_back({.master = parameters_[i],
                      .grad = grad,
                      .exp_avg = first_moments_[i],
                      .exp_avg_sq = second_moments_[i],
                      .lr = options_.lr,
                      .weight_decay = decay_[i]});
  }
  optim::fused_adamw(shards, {.step = number});
  for (Tensor& p : parameters_) p.mutable_grad() = Tensor();
}

double PlainLlama::step(const Tensor& ids, const Tensor& labels, int64_t number) {
  const Tensor mean = loss(ids, labels);
  mean.backward();
  update(number);
  return mean.item<double>();
}

}  // namespace assay::bench
