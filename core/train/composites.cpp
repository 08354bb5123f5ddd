// The composites of assay/ops.h: plain functions over the top of the stack.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/logaddexp.h>

#include <array>

#include "assay/ops.h"

namespace assay {
namespace {

// Documents of one row are attended one after the other: a loop of causal calls gives the bits of a
// masked call at a fraction of its cost (no T x T mask).
Tensor attend_row(Ops& ops, const Tensor& q, const Tensor& k, const Tensor& v,
                  const AttentionSpec& spec, const std::vector<int64_t>& starts) {
  Tensors parts;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t end = i + 1 < starts.size() ? starts[i + 1] : q.size(1);
    const auto cut = [&](const Tensor& x) {
      return x.narrow(1, starts[i], end - starts[i]).contiguous();
    };
    parts.push_back(ops.attention_part(cut(q), cut(k), cut(v), spec).out);
  }
  return at::cat(parts, 1);
}

}  // namespace

Tensor attention(Ops& ops, const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionSpec& spec) {
  if (!spec.documents || spec.documents->starts.empty() || ops.masks_documents()) {
    return ops.attention_part(q, k, v, spec).out;
  }
  Tensors rows;
  for (int64_t b = 0; b < q.size(0); ++b) {
    const auto row = [&](const Tensor& x) { return x.narrow(0, b, 1); };
    rows.push_back(attend_row(ops, row(q), row(k), row(v), spec,
                              spec.documents->starts[static_cast<size_t>(b)]));
  }
  return at::cat(rows, 0);
}

void merge_attention(const AttentionPart& into, const AttentionPart& part) {
  const Tensor weight = part.lse.sub(into.lse).sigmoid_().transpose(1, 2).unsqueeze(-1);
  const auto heads = [&](const Tensor& x) {
    return x.view({x.size(0), x.size(1), into.lse.size(1), -1});
  };
  heads(into.out).lerp_(heads(part.out).to(into.out.scalar_type()), weight);
  into.lse.copy_(at::logaddexp(into.lse, part.lse));
}

Tensor swiglu_mlp(Ops& ops, const Tensor& x, std::span<const Weight> weights) {
  const Tensors gate_up = ops.linear(x, weights.subspan(0, 2));
  const Tensor inner = ops.pointwise(Pointwise::swiglu, gate_up);
  return ops.linear(inner, weights.subspan(2, 1))[0];
}

Tensor moe(Ops& ops, const Tensor& x, const Routing& routing, std::span<const Weight> weights,
           int64_t pad_rows) {
  const Dispatch sent = ops.dispatch(rows_of(x), routing.experts, routing.scores.size(1), pad_rows);
  const Tensors gate_up = ops.grouped_linear(sent.rows, sent.expert_rows, weights.subspan(0, 2));
  const Tensor inner = ops.pointwise(Pointwise::swiglu, gate_up);
  const Tensor y = ops.grouped_linear(inner, sent.expert_rows, weights.subspan(2, 1))[0];
  return ops.combine(y, sent, routing.gates).view(x.sizes());
}

Tensor cross_entropy(Ops& ops, const Tensor& hidden, const Weight& head, const Tensor& labels,
                     const Tensor& token_weights) {
  const CrossEntropyStats stats = ops.ce_stats(hidden, head, labels);
  const Tensor per_token = stats.sum_exp.log().add(stats.max).sub(stats.target);
  Tensor mask = labels.flatten().ge(0).to(per_token.scalar_type());
  if (token_weights.defined()) mask = mask.mul(token_weights.flatten());
  return per_token.mul(mask).to(at::kDouble).sum();
}

}  // namespace assay
