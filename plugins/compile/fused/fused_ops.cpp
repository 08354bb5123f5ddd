// Each primitive: forward, what it keeps, backward.
#include "fused_ops.h"

#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "assay/primitive.h"
#include "operators.h"
#include "product.h"

namespace assay::fused {
namespace {

/// The scale of a norm in the dtype of its arithmetic: d elements, exact.
Tensor wide_scale(const Weight& scale, const Tensor& x) {
  return scale.tensor.to(statistics_dtype(x.scalar_type())).contiguous();
}

bool has_kernels(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kDouble;
}

Tensor zeros_if_undefined(const Tensor& gradient, const Tensor& like) {
  return gradient.defined() ? gradient : at::zeros_like(like);
}

/// LibTorch's product is the faster one where k is the tokens (docs/decisions/0001), and lands in
/// the sink's total without a copy; in bf16 an own one keeps the sum in fp32.
void add_weight_gradient(const Weight& weight, const Tensor& dy, const Tensor& x) {
  if (x.scalar_type() == at::kFloat) {
    weight.sink->add_product(rows_of(dy), rows_of(x));
  } else {
    weight.sink->add([dy, x] { return call_linear_dw(dy, x); });
  }
}

}  // namespace

bool FusedOps::serves(bool part, const Tensor& x) {
  if (!part || !(x.is_cpu() || x.is_meta()) || !has_kernels(x.scalar_type())) return false;
  ++*calls_;
  return true;
}

Tensor FusedOps::norm(const Tensor& x, const Weight& scale, double eps) {
  if (!serves(parts_.model, x)) return next().norm(x, scale, eps);
  return primitive(
      {x},
      [&](const Tensors& in, Tensors& saved) {
        auto [y, rstd] = call_norm(in[0], wide_scale(scale, in[0]), eps);
        saved = {in[0], rstd};
        return Tensors{y};
      },
      [scale](const Tensors& saved, const Tensors& dy) {
        auto [dx, dscale] =
            call_norm_backward(dy[0], saved[0], wide_scale(scale, saved[0]), saved[1]);
        scale.sink->add([dscale = dscale] { return dscale; });
        return Tensors{dx};
      })[0];
}

Tensors FusedOps::linear(const Tensor& x, std::span<const Weight> weights) {
  const bool one_dtype = std::all_of(weights.begin(), weights.end(), [&](const Weight& w) {
    return w.tensor.scalar_type() == x.scalar_type();
  });
  const bool wanted = x.scalar_type() == at::kFloat ? parts_.fp32_products : parts_.products;
  if (!one_dtype || !own_products(x.scalar_type()) || !serves(wanted, x)) {
    return next().linear(x, weights);
  }
  return primitive(
      {x},
      [&](const Tensors& in, Tensors& saved) {
        saved = {in[0]};
        Tensors tensors;
        for (const Weight& w : weights) tensors.push_back(w.tensor);
        return call_linear(in[0], tensors);
      },
      [weights = std::vector<Weight>(weights.begin(), weights.end())](const Tensors& saved,
                                                                      const Tensors& gradients) {
        Tensors dys, tensors;
        for (size_t i = 0; i < weights.size(); ++i) {
          if (!gradients[i].defined()) continue;
          dys.push_back(gradients[i]);
          tensors.push_back(weights[i].tensor);
          add_weight_gradient(weights[i], gradients[i], saved[0]);
        }
        return Tensors{dys.empty() ? Tensor() : call_linear_dx(dys, tensors)};
      });
}

Tensor FusedOps::rope(const Tensor& x, const Positions& positions, const RopeSpec& spec) {
  if (!serves(parts_.model, x)) return next().rope(x, positions, spec);
  auto [cos, sin] = rope_.get(x, positions, spec);
  return primitive(
      {x},
      [&, cos = cos, sin = sin](const Tensors& in, Tensors&) {
        return Tensors{call_rope(in[0], cos, sin, false)};
      },
      [cos = cos, sin = sin](const Tensors&, const Tensors& dy) {
        return Tensors{call_rope(dy[0], cos, sin, true)};
      })[0];
}

bool FusedOps::serves_attention(const Tensor& q, const AttentionSpec& spec) {
  return spec.kind == "softmax" && q.scalar_type() != at::kDouble && serves(parts_.model, q);
}

AttentionPart FusedOps::attention_part(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const AttentionSpec& spec) {
  if (!serves_attention(q, spec)) return next().attention_part(q, k, v, spec);
  const auto outputs = primitive(
      {q, k, v},
      [&](const Tensors& in, Tensors& saved) {
        auto [out, lse] =
            call_attention(in[0], in[1], in[2], spec.head_dim, spec.scale, spec.causal);
        saved = {in[0], in[1], in[2], out, lse};
        return Tensors{out, lse};
      },
      [spec](const Tensors& s, const Tensors& dy) {
        auto [dq, dk, dv] = call_attention_backward(dy[0], s[0], s[1], s[2], s[3], s[4],
                                                    spec.head_dim, spec.scale, spec.causal);
        return Tensors{dq, dk, dv};
      });
  return {outputs[0], outputs[1].detach()};
}

AttentionGradients FusedOps::attention_part_backward(const Tensor& dout, const Tensor& q,
                                                     const Tensor& k, const Tensor& v,
                                                     const AttentionPart& whole,
                                                     const AttentionSpec& spec) {
  if (!serves_attention(q, spec)) {
    return next().attention_part_backward(dout, q, k, v, whole, spec);
  }
  auto [dq, dk, dv] = call_attention_backward(dout, q, k, v, whole.out, whole.lse, spec.head_dim,
                                              spec.scale, spec.causal);
  return {dq, dk, dv};
}

Tensor FusedOps::pointwise(Pointwise kind, std::span<const Tensor> inputs) {
  if (kind != Pointwise::swiglu || !serves(parts_.model, inputs[0])) {
    return next().pointwise(kind, inputs);
  }
  return primitive(
      {inputs[0], inputs[1]},
      [](const Tensors& in, Tensors& saved) {
        saved = in;
        return Tensors{call_swiglu(in[0], in[1])};
      },
      [](const Tensors& saved, const Tensors& dy) {
        auto [dgate, dup] = call_swiglu_backward(dy[0], saved[0], saved[1]);
        return Tensors{dgate, dup};
      })[0];
}

CrossEntropyStats FusedOps::ce_stats(const Tensor& hidden, const Weight& head,
                                     const Tensor& labels) {
  if (!serves(parts_.loss, hidden)) return next().ce_stats(hidden, head, labels);
  const Tensor flat = labels.flatten();
  const auto out = primitive(
      {hidden},
      [&](const Tensors& in, Tensors& saved) {
        auto [max, sum_exp, target] = call_ce_stats(rows_of(in[0]), head.tensor, flat);
        saved = {in[0], max};
        return Tensors{max, sum_exp, target};
      },
      [head, flat](const Tensors& saved, const Tensors& dy) {
        auto [dhidden, dhead] = call_ce_backward(rows_of(saved[0]), head.tensor, flat, saved[1],
                                                 zeros_if_undefined(dy[1], saved[1]),
                                                 zeros_if_undefined(dy[2], saved[1]));
        head.sink->add([dhead = dhead] { return dhead; });
        return Tensors{dhidden.view(saved[0].sizes())};
      });
  return {out[0].detach(), out[1], out[2]};
}

}  // namespace assay::fused
