// The plain kernels in ATen calls. None reads a tensor value, so one body serves CPU and meta
// except where LibTorch lacks a meta kernel.
#include "core/train/kernels.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include "assay/operators.h"
#include "assay/ops.h"
#include "core/train/product.h"

namespace assay::train {
namespace {

Tensors linear(const Tensor& x, at::TensorList weights) {
  const Tensor input = rows_of(x);
  Tensors outputs;
  for (const Tensor& w : weights) {
    Shape shape = x.sizes().vec();
    shape.back() = w.size(0);
    outputs.push_back(product(input, w.t()).view(shape));
  }
  return outputs;
}

std::tuple<Tensor, Tensor> norm(const Tensor& x, const Tensor& scale, double eps) {
  const Tensor wide = x.to(statistics_dtype(x.scalar_type()));
  const Tensor rstd = wide.square().mean(-1, /*keepdim=*/true).add_(eps).rsqrt_();
  return {wide.mul(rstd).mul_(scale).to(x.scalar_type()), rstd};
}

Tensor norm_dx(const Tensor& dy, const Tensor& x, const Tensor& scale, const Tensor& rstd) {
  const Tensor unit = x.mul(rstd);
  const Tensor dunit = dy.mul(scale.to(rstd.scalar_type()));
  const Tensor along = dunit.mul(unit).mean(-1, /*keepdim=*/true);
  return dunit.sub(unit.mul(along)).mul_(rstd).to(x.scalar_type());
}

Tensor norm_dscale(const Tensor& dy, const Tensor& x, const Tensor& rstd) {
  return rows_of(x.mul(rstd).mul_(dy)).sum(0);
}

Tensor embedding(const Tensor& ids, const Tensor& table) {
  Shape shape = ids.sizes().vec();
  shape.push_back(table.size(1));
  return table.index_select(0, ids.flatten()).view(shape);
}

Tensor embedding_meta(const Tensor& ids, const Tensor& table) {
  Shape shape = ids.sizes().vec();
  shape.push_back(table.size(1));
  return at::empty(shape, table.options());
}

Tensor embedding_dtable(const Tensor& ids, const Tensor& dy, const Tensor& like) {
  return at::zeros_like(like).index_add_(0, ids.flatten(), rows_of(dy).to(like.scalar_type()));
}

Tensor like_last(const Tensor&, const Tensor&, const Tensor& like) { return at::empty_like(like); }

Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) {
  const int64_t half = cos.size(-1);
  const int64_t table_batch = cos.dim() == 3 ? x.size(0) : 1;
  const Tensor heads = x.view({x.size(0), x.size(1), -1, 2, half});
  const Tensor c = cos.view({table_batch, x.size(1), 1, half});
  const Tensor s = inverse ? sin.neg().view(c.sizes()) : sin.view(c.sizes());
  const Tensor first = heads.select(3, 0), second = heads.select(3, 1);
  const Tensor rotated_first = first.mul(c).sub_(second.mul(s));
  const Tensor rotated_second = second.mul(c).add_(first.mul(s));
  return at::cat({rotated_first, rotated_second}, -1).to(x.scalar_type()).view(x.sizes());
}

Tensor split_heads(const Tensor& x, int64_t head_dim) {
  return x.view({x.size(0), x.size(1), -1, head_dim}).transpose(1, 2);
}

Tensor join_heads(const Tensor& x) { return x.transpose(1, 2).flatten(2); }

/// LibTorch's kernel, which lets query i see keys 0 .. i where it is causal.
AttentionPart flash(const Tensor& q, const Tensor& k, const Tensor& v, int64_t head_dim,
                    double scale, bool causal) {
  auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
      split_heads(q, head_dim), split_heads(k, head_dim), split_heads(v, head_dim),
      /*dropout_p=*/0.0, causal, /*attn_mask=*/{}, scale);
  return {join_heads(out), lse};
}

// More keys than queries: the keys that every query sees, merged with the causal square.
std::tuple<Tensor, Tensor> attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                     int64_t head_dim, double scale, bool causal) {
  const int64_t before = causal ? k.size(1) - q.size(1) : 0;
  const auto keys = [&](int64_t begin, int64_t end, bool square) {
    return flash(q, k.slice(1, begin, end), v.slice(1, begin, end), head_dim, scale, square);
  };
  AttentionPart part = keys(before, k.size(1), causal);
  if (before == 0) return {part.out, part.lse};
  part.out = part.out.to(part.lse.scalar_type());
  merge_attention(part, keys(0, before, false));
  return {part.out.to(q.scalar_type()), part.lse};
}

std::tuple<Tensor, Tensor> attention_meta(const Tensor& q, const Tensor&, const Tensor&,
                                          int64_t head_dim, double, bool) {
  return {at::empty_like(q), at::empty({q.size(0), q.size(2) / head_dim, q.size(1)},
                                       q.options().dtype(statistics_dtype(q.scalar_type())))};
}

AttentionGradients flash_backward(const Tensor& dout, const Tensor& q, const Tensor& k,
                                  const Tensor& v, const AttentionPart& whole, int64_t head_dim,
                                  double scale, bool causal) {
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      split_heads(dout, head_dim), split_heads(q, head_dim), split_heads(k, head_dim),
      split_heads(v, head_dim), split_heads(whole.out, head_dim), whole.lse, /*dropout_p=*/0.0,
      causal, /*attn_mask=*/{}, scale);
  return {join_heads(dq), join_heads(dk), join_heads(dv)};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& dout, const Tensor& q,
                                                      const Tensor& k, const Tensor& v,
                                                      const Tensor& out, const Tensor& lse,
                                                      int64_t head_dim, double scale, bool causal) {
  const int64_t before = causal ? k.size(1) - q.size(1) : 0;
  const auto keys = [&](int64_t begin, int64_t end, bool square) {
    return flash_backward(dout, q, k.slice(1, begin, end), v.slice(1, begin, end), {out, lse},
                          head_dim, scale, square);
  };
  const AttentionGradients own = keys(before, k.size(1), causal);
  if (before == 0) return {own.dq, own.dk, own.dv};
  const AttentionGradients earlier = keys(0, before, false);
  return {own.dq.add(earlier.dq), at::cat({earlier.dk, own.dk}, 1),
          at::cat({earlier.dv, own.dv}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward_meta(const Tensor&, const Tensor& q,
                                                           const Tensor& k, const Tensor& v,
                                                           const Tensor&, const Tensor&, int64_t,
                                                           double, bool) {
  return {at::empty_like(q), at::empty_like(k), at::empty_like(v)};
}

Tensor wide_logits(const Tensor& hidden, const Tensor& head) {
  return product(hidden, head.t()).to(statistics_dtype(hidden.scalar_type()));
}

std::tuple<Tensor, Tensor, Tensor> ce_stats(const Tensor& hidden, const Tensor& head,
                                            const Tensor& labels) {
  const Tensor logits = wide_logits(hidden, head);
  const Tensor index = labels.clamp_min(0).unsqueeze(1);
  const Tensor target = logits.gather(1, index).squeeze(1).mul_(labels.ge(0));
  const Tensor max = logits.amax(-1);
  return {max, logits.sub(max.unsqueeze(-1)).exp_().sum(-1), target};
}

Tensor ce_dlogits(const Tensor& hidden, const Tensor& head, const Tensor& labels, const Tensor& max,
                  const Tensor& dsum, const Tensor& dtarget) {
  Tensor dlogits = wide_logits(hidden, head).sub_(max.unsqueeze(-1)).exp_();
  dlogits.mul_(dsum.unsqueeze(-1));
  const Tensor at_target = dtarget.mul(labels.ge(0)).unsqueeze(-1);
  dlogits.scatter_add_(1, labels.clamp_min(0).unsqueeze(1), at_target);
  return dlogits.to(hidden.scalar_type());
}

struct Operators {
  OperatorLibrary library{"assay"};
  Operators() {
    library.add<&linear>("linear(Tensor x, Tensor[] weights) -> Tensor[]");
    library.add<&norm>("norm(Tensor x, Tensor scale, float eps) -> (Tensor, Tensor)");
    library.add<&norm_dx>("norm_dx(Tensor dy, Tensor x, Tensor scale, Tensor rstd) -> Tensor");
    library.add<&norm_dscale>("norm_dscale(Tensor dy, Tensor x, Tensor rstd) -> Tensor");
    library.add<&embedding, &embedding_meta>("embedding(Tensor ids, Tensor table) -> Tensor");
    library.add<&embedding_dtable, &like_last>(
        "embedding_dtable(Tensor ids, Tensor dy, Tensor like) -> Tensor");
    library.add<&rope>("rope(Tensor x, Tensor cos, Tensor sin, bool inverse) -> Tensor");
    library.add<&attention, &attention_meta>(
        "attention(Tensor q, Tensor k, Tensor v, int head_dim, float scale, bool causal)"
        " -> (Tensor, Tensor)");
    library.add<&attention_backward, &attention_backward_meta>(
        "attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse,"
        " int head_dim, float scale, bool causal) -> (Tensor, Tensor, Tensor)");
    library.add<&ce_stats>(
        "ce_stats(Tensor hidden, Tensor head, Tensor labels) -> (Tensor, Tensor, Tensor)");
    library.add<&ce_dlogits>(
        "ce_dlogits(Tensor hidden, Tensor head, Tensor labels, Tensor max, Tensor dsum,"
        " Tensor dtarget) -> Tensor");
  }
};

}  // namespace

void register_kernels() {
  static Operators* operators = new Operators;  // for the life of the process
  (void)operators;
}

// One typed handle per operator, found on the first call.
#define ASSAY_CALL(kernel, ...)                                              \
  register_kernels();                                                        \
  static const auto op = find_operator<decltype(kernel)>("assay::" #kernel); \
  return op.call(__VA_ARGS__)

Tensors call_linear(const Tensor& x, at::TensorList weights) { ASSAY_CALL(linear, x, weights); }
std::tuple<Tensor, Tensor> call_norm(const Tensor& x, const Tensor& scale, double eps) {
  ASSAY_CALL(norm, x, scale, eps);
}
Tensor call_norm_dx(const Tensor& dy, const Tensor& x, const Tensor& scale, const Tensor& rstd) {
  ASSAY_CALL(norm_dx, dy, x, scale, rstd);
}
Tensor call_norm_dscale(const Tensor& dy, const Tensor& x, const Tensor& rstd) {
  ASSAY_CALL(norm_dscale, dy, x, rstd);
}
Tensor call_embedding(const Tensor& ids, const Tensor& table) { ASSAY_CALL(embedding, ids, table); }
Tensor call_embedding_dtable(const Tensor& ids, const Tensor& dy, const Tensor& like) {
  ASSAY_CALL(embedding_dtable, ids, dy, like);
}
Tensor call_rope(const Tensor& x, const Tensor& cos, const Tensor& sin, bool inverse) {
  ASSAY_CALL(rope, x, cos, sin, inverse);
}
std::tuple<Tensor, Tensor> call_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                          int64_t head_dim, double scale, bool causal) {
  ASSAY_CALL(attention, q, k, v, head_dim, scale, causal);
}
std::tuple<Tensor, Tensor, Tensor> call_attention_backward(const Tensor& dout, const Tensor& q,
                                                           const Tensor& k, const Tensor& v,
                                                           const Tensor& out, const Tensor& lse,
                                                           int64_t head_dim, double scale,
                                                           bool causal) {
  ASSAY_CALL(attention_backward, dout, q, k, v, out, lse, head_dim, scale, causal);
}
std::tuple<Tensor, Tensor, Tensor> call_ce_stats(const Tensor& hidden, const Tensor& head,
                                                 const Tensor& labels) {
  ASSAY_CALL(ce_stats, hidden, head, labels);
}
Tensor call_ce_dlogits(const Tensor& hidden, const Tensor& head, const Tensor& labels,
                       const Tensor& max, const Tensor& dsum, const Tensor& dtarget) {
  ASSAY_CALL(ce_dlogits, hidden, head, labels, max, dsum, dtarget);
}

#undef ASSAY_CALL

}  // namespace assay::train
