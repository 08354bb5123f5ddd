// EagerOps: the plain implementation of every primitive, at the bottom of each stack.
#include <ATen/ops/silu.h>

#include <utility>

#include "assay/ops.h"
#include "assay/primitive.h"
#include "assay/rope_table.h"
#include "core/train/eager_experts.h"
#include "core/train/kernels.h"
#include "core/train/product.h"

namespace assay {
namespace train {
namespace {

class EagerOps : public Ops {
 public:
  Tensor embedding(const Tensor& anchor, const Tensor& ids, const Weight& table) override {
    return primitive(
        {anchor},
        [&](const Tensors&, Tensors&) { return Tensors{call_embedding(ids, table.tensor)}; },
        [ids, sink = table.sink](const Tensors&, const Tensors& dy) {
          sink->add(
              [ids, dy = dy[0], sink] { return call_embedding_dtable(ids, dy, sink->total()); });
          return Tensors{Tensor()};  // enough: the hooks on the anchor run all the same
        })[0];
  }

  Tensor norm(const Tensor& x, const Weight& scale, double eps) override {
    return primitive(
        {x},
        [&](const Tensors& in, Tensors& saved) {
          auto [y, rstd] = call_norm(in[0], scale.tensor, eps);
          saved = {in[0], rstd};
          return Tensors{y};
        },
        [scale](const Tensors& saved, const Tensors& dy) {
          scale.sink->add([dy = dy[0], x = saved[0], rstd = saved[1]] {
            return call_norm_dscale(dy, x, rstd);
          });
          return Tensors{call_norm_dx(dy[0], saved[0], scale.tensor, saved[1])};
        })[0];
  }

  Tensors linear(const Tensor& x, std::span<const Weight> weights) override {
    return primitive(
        {x},
        [&](const Tensors& in, Tensors& saved) {
          saved = {in[0]};
          Tensors tensors;
          for (const Weight& w : weights) tensors.push_back(w.tensor);
          return call_linear(in[0], tensors);
        },
        [weights = std::vector<Weight>(weights.begin(), weights.end())](const Tensors& saved,
                                                                        const Tensors& dys) {
          const Tensor input = rows_of(saved[0]);
          Tensor dx;
          for (size_t i = 0; i < weights.size(); ++i) {
            if (!dys[i].defined()) continue;
            const Tensor dy = rows_of(dys[i]);
            dx = dx.defined() ? add_product(dx, dy, weights[i].tensor)
                              : product(dy, weights[i].tensor);
            weights[i].sink->add_product(dy, input);
          }
          return Tensors{dx.defined() ? dx.view(saved[0].sizes()) : dx};
        });
  }

  Tensor rope(const Tensor& x, const Positions& positions, const RopeSpec& spec) override {
    auto [cos, sin] = rope_.get(x, positions, spec);
    return primitive(
        {x},
        [&](const Tensors& in, Tensors&) { return Tensors{call_rope(in[0], cos, sin, false)}; },
        [cos, sin](const Tensors&, const Tensors& dy) {
          return Tensors{call_rope(dy[0].contiguous(), cos, sin, true)};
        })[0];
  }

  AttentionPart attention_part(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttentionSpec& spec) override {
    if (spec.kind != "softmax") {
      throw Error("attention kind '" + spec.kind + "' is not served; allowed: softmax");
    }
    const auto outputs = primitive(
        {q, k, v},
        [&](const Tensors& in, Tensors& saved) {
          auto [out, lse] =
              call_attention(in[0], in[1], in[2], spec.head_dim, spec.scale, spec.causal);
          saved = {in[0], in[1], in[2], out, lse};
          return Tensors{out, lse};
        },
        [spec](const Tensors& s, const Tensors& dy) {
          auto [dq, dk, dv] = call_attention_backward(dy[0].contiguous(), s[0], s[1], s[2], s[3],
                                                      s[4], spec.head_dim, spec.scale, spec.causal);
          return Tensors{dq, dk, dv};
        });
    return {outputs[0], outputs[1].detach()};
  }

  AttentionGradients attention_part_backward(const Tensor& dout, const Tensor& q, const Tensor& k,
                                             const Tensor& v, const AttentionPart& whole,
                                             const AttentionSpec& spec) override {
    auto [dq, dk, dv] = call_attention_backward(dout, q, k, v, whole.out, whole.lse, spec.head_dim,
                                                spec.scale, spec.causal);
    return {dq, dk, dv};
  }

  Tensor pointwise(Pointwise kind, std::span<const Tensor> in) override {
    switch (kind) {
      case Pointwise::swiglu:
        return swiglu(in[0], in[1]);
      case Pointwise::residual:
        return in[0].add(in[1]);
    }
    throw Error("unknown pointwise kind");
  }

  CrossEntropyStats ce_stats(const Tensor& hidden, const Weight& head,
                             const Tensor& labels) override {
    const Tensor flat_labels = labels.flatten();
    const auto out = primitive(
        {hidden},
        [&](const Tensors& in, Tensors& saved) {
          auto [max, sum_exp, target] = call_ce_stats(rows_of(in[0]), head.tensor, flat_labels);
          saved = {in[0], max};  // the logits are computed again in backward
          return Tensors{max, sum_exp, target};
        },
        [head, flat_labels](const Tensors& saved, const Tensors& dy) {
          const Tensor input = rows_of(saved[0]);
          const Tensor dlogits =
              call_ce_dlogits(input, head.tensor, flat_labels, saved[1], dy[1], dy[2]);
          head.sink->add_product(dlogits, input);
          return Tensors{product(dlogits, head.tensor).view(saved[0].sizes())};
        });
    return {out[0].detach(), out[1], out[2]};
  }

  Routing route(const Tensor& x, const Weight& router, const Tensor& bias,
                const RouteSpec& spec) override {
    return eager_route(x, router, bias, spec);
  }
  Dispatch dispatch(const Tensor& x, const Tensor& experts, int64_t expert_count,
                    int64_t pad_rows) override {
    return eager_dispatch(x, experts, expert_count, pad_rows);
  }
  Tensors grouped_linear(const Tensor& x, std::span<const int64_t> expert_rows,
                         std::span<const Weight> weights) override {
    return eager_grouped_linear(x, expert_rows, weights);
  }
  Tensor combine(const Tensor& y, const Dispatch& dispatch, const Tensor& gates) override {
    return eager_combine(y, dispatch, gates);
  }

 private:
  static Tensor swiglu(const Tensor& gate, const Tensor& up);
  RopeTable rope_;
};

// Keeps gate, up and silu(gate), as unfused autograd does (recipes 3.1).
Tensor EagerOps::swiglu(const Tensor& gate, const Tensor& up) { return at::silu(gate).mul(up); }

}  // namespace
}  // namespace train

std::unique_ptr<Ops> make_eager_ops() { return std::make_unique<train::EagerOps>(); }

}  // namespace assay
