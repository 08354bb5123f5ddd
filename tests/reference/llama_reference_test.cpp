// The same weights and batch through assay and through a hand-written file: loss and gradients
// agree.
#include "llama_reference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>

#include <cmath>

#include "tests/core/train/recipes.h"

namespace reference {
namespace {

using at::Tensor;

Tensor rms_norm(const Tensor& x, const Tensor& scale, double eps) {
  return x * (x * x).mean(-1, true).add(eps).rsqrt() * scale;
}

// (B, H, S, dh), halves convention.
Tensor rotate(const Tensor& x, double theta) {
  const int64_t half = x.size(3) / 2;
  const Tensor pair = at::arange(half, x.options()) / static_cast<double>(half);
  const Tensor frequency = at::full({}, theta, x.options()).pow(-pair);
  const Tensor angle = at::arange(x.size(2), x.options()).unsqueeze(1) * frequency;
  const Tensor a = x.narrow(3, 0, half), b = x.narrow(3, half, half);
  return at::cat({a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()}, 3);
}

Tensor attention(const Tensor& x, const Weights& w, const std::string& layer,
                 const Dimensions& size) {
  const int64_t batch = x.size(0), length = x.size(1);
  const auto heads = [&](const char* name, int64_t count) {
    return x.matmul(w.at(layer + name).t()).view({batch, length, count, -1}).transpose(1, 2);
  };
  const Tensor q = rotate(heads("self_attn.q_proj.weight", size.heads), size.theta);
  const int64_t group = size.heads / size.kv_heads;
  const Tensor k = rotate(heads("self_attn.k_proj.weight", size.kv_heads), size.theta)
                       .repeat_interleave(group, 1);
  const Tensor v = heads("self_attn.v_proj.weight", size.kv_heads).repeat_interleave(group, 1);
  const Tensor future = at::full({length, length}, -INFINITY, x.options()).triu(1);
  const Tensor scores =
      q.matmul(k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3))) + future;
  const Tensor mixed = at::softmax(scores, -1).matmul(v).transpose(1, 2).reshape_as(x);
  return mixed.matmul(w.at(layer + "self_attn.o_proj.weight").t());
}

Tensor mlp(const Tensor& x, const Weights& w, const std::string& layer) {
  const Tensor gate = at::silu(x.matmul(w.at(layer + "mlp.gate_proj.weight").t()));
  return (gate * x.matmul(w.at(layer + "mlp.up_proj.weight").t()))
      .matmul(w.at(layer + "mlp.down_proj.weight").t());
}

}  // namespace

Tensor loss(const Weights& w, const Tensor& ids, const Tensor& labels, const Dimensions& size) {
  const Tensor table = w.at("model.embed_tokens.weight");
  Tensor x = table.index_select(0, ids.flatten()).view({ids.size(0), ids.size(1), table.size(1)});
  for (int64_t i = 0; i < size.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    x = x +
        attention(rms_norm(x, w.at(layer + "input_layernorm.weight"), size.eps), w, layer, size);
    x = x + mlp(rms_norm(x, w.at(layer + "post_attention_layernorm.weight"), size.eps), w, layer);
  }
  const Tensor logits =
      rms_norm(x, w.at("model.norm.weight"), size.eps).matmul(w.at("lm_head.weight").t());
  return at::log_softmax(logits, -1).gather(2, labels.unsqueeze(2)).mean().neg();
}

}  // namespace reference

namespace assay::train {
namespace {

struct Limits {
  const char* precision;
  double loss, gradient;  // relative
};

class AgainstReference : public testing::TestWithParam<Limits> {};

TEST_P(AgainstReference, LossAndEveryGradient) {
  auto config = small_config();
  config["precision"] = {{"name", GetParam().precision}};
  config["model"]["rope_scaling"] = "none";
  config["train"]["micro_batch"] = 4;
  config["train"]["max_norm"] = 0.0;
  auto trainer = make_trainer(config);
  Assembly& a = trainer->assembly();

  reference::Weights weights;
  for (const Parameter& p : a.parameters) {
    weights[p.spec.name] = p.weight.detach().clone().requires_grad_();
  }
  const Microbatch micro = trainer->batches().train(0).microbatches.at(0);
  const Tensor expected = reference::loss(weights, micro.ids, micro.labels, {2, 4, 2});
  expected.backward();

  const StepResult step = trainer->step(0);
  EXPECT_NEAR(step.loss, expected.item<double>(), GetParam().loss * expected.item<double>());
  for (const Parameter& p : a.parameters) {
    const Tensor wanted = weights.at(p.spec.name).grad();
    const double error = ((p.sink.total() - wanted).norm() / wanted.norm()).item<double>();
    EXPECT_LT(error, GetParam().gradient) << p.spec.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, AgainstReference,
                         testing::Values(Limits{"fp64", 1e-12, 1e-10}, Limits{"fp32", 1e-5, 1e-4}),
                         [](const auto& info) { return std::string(info.param.precision); });

}  // namespace
}  // namespace assay::train
