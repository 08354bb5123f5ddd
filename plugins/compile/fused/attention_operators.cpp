// Attention as an operator: one task per head (forward) or per group of heads that share keys.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "kernel_table.h"
#include "operator_groups.h"
#include "operators.h"

namespace assay::fused {
namespace {

struct Heads {
  int64_t batch, queries, keys, heads, kv_heads, head_dim;
  int64_t group() const { return heads / kv_heads; }
};

Heads heads_of(const Tensor& q, const Tensor& k, int64_t head_dim) {
  const Heads h{q.size(0), q.size(1), k.size(1), q.size(2) / head_dim, k.size(2) / head_dim,
                head_dim};
  TORCH_CHECK(h.kv_heads > 0 && h.heads % h.kv_heads == 0, "compile/fused: ", h.heads,
              " query heads cannot share ", h.kv_heads, " key heads");
  return h;
}

/// The problem of key head `kv` of sequence `b`; its first query head.
template <class T>
AttentionProblem<T> problem(const Heads& h, const Tensor& q, const Tensor& k, const Tensor& v,
                            int64_t b, int64_t kv, double scale, bool causal) {
  const int64_t q_stride = q.size(2), kv_stride = k.size(2);
  const int64_t at = b * h.keys * kv_stride + kv * h.head_dim;
  return {q.const_data_ptr<T>() + b * h.queries * q_stride + kv * h.group() * h.head_dim,
          k.const_data_ptr<T>() + at,
          v.const_data_ptr<T>() + at,
          q_stride,
          kv_stride,
          h.queries,
          h.keys,
          h.head_dim,
          static_cast<float>(scale),
          causal};
}

std::tuple<Tensor, Tensor> attention_meta(const Tensor& q, const Tensor& k, const Tensor&,
                                          int64_t head_dim, double, bool) {
  const Heads h = heads_of(q, k, head_dim);
  return {at::empty(q.sizes(), q.options()),
          at::empty({h.batch, h.heads, h.queries}, q.options().dtype(at::kFloat))};
}

template <class T>
void forward(const Heads& h, const Tensor& q, const Tensor& k, const Tensor& v, double scale,
             bool causal, const Tensor& out, const Tensor& lse) {
  T* to = out.mutable_data_ptr<T>();
  float* statistics = lse.mutable_data_ptr<float>();
  at::parallel_for(0, h.batch * h.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t b = task / h.heads, head = task % h.heads, member = head % h.group();
      auto p = problem<T>(h, q, k, v, b, head / h.group(), scale, causal);
      p.q += member * h.head_dim;
      kernels().attention<T>().forward(p, to + (p.q - q.const_data_ptr<T>()),
                                       statistics + task * h.queries);
    }
  });
}

std::tuple<Tensor, Tensor> attention(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in,
                                     int64_t head_dim, double scale, bool causal) {
  const Tensor q = q_in.contiguous(), k = k_in.contiguous(), v = v_in.contiguous();
  auto [out, lse] = attention_meta(q, k, v, head_dim, scale, causal);
  const Heads h = heads_of(q, k, head_dim);
  q.scalar_type() == at::kFloat ? forward<float>(h, q, k, v, scale, causal, out, lse)
                                : forward<c10::BFloat16>(h, q, k, v, scale, causal, out, lse);
  return {out, lse};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward_meta(const Tensor&, const Tensor& q,
                                                           const Tensor& k, const Tensor& v,
                                                           const Tensor&, const Tensor&, int64_t,
                                                           double, bool) {
  return {at::empty(q.sizes(), q.options()), at::empty(k.sizes(), k.options()),
          at::empty(v.sizes(), v.options())};
}

struct Gradients {
  Tensor dq, dk, dv;
};

template <class T>
void backward(const Heads& h, const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v,
              const Tensor& out, const Tensor& lse, double scale, bool causal,
              const Gradients& gradients) {
  T* dq = gradients.dq.mutable_data_ptr<T>();
  T *dk = gradients.dk.mutable_data_ptr<T>(), *dv = gradients.dv.mutable_data_ptr<T>();
  const float* statistics = lse.const_data_ptr<float>();
  at::parallel_for(0, h.batch * h.kv_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t b = task / h.kv_heads, kv = task % h.kv_heads;
      const auto p = problem<T>(h, q, k, v, b, kv, scale, causal);
      const int64_t at_q = p.q - q.const_data_ptr<T>(), at_k = p.k - k.const_data_ptr<T>();
      kernels().attention<T>().backward(
          p, h.group(), dout.const_data_ptr<T>() + at_q, out.const_data_ptr<T>() + at_q,
          statistics + task * h.group() * h.queries, dq + at_q, dk + at_k, dv + at_k);
    }
  });
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& dout_in, const Tensor& q_in,
                                                      const Tensor& k_in, const Tensor& v_in,
                                                      const Tensor& out_in, const Tensor& lse_in,
                                                      int64_t head_dim, double scale, bool causal) {
  const Tensor q = q_in.contiguous(), k = k_in.contiguous(), v = v_in.contiguous();
  const Tensor dout = dout_in.contiguous(), out = out_in.contiguous(), lse = lse_in.contiguous();
  const auto [dq, dk, dv] =
      attention_backward_meta(dout, q, k, v, out, lse, head_dim, scale, causal);
  const Heads h = heads_of(q, k, head_dim);
  const Gradients gradients{dq, dk, dv};
  q.scalar_type() == at::kFloat
      ? backward<float>(h, dout, q, k, v, out, lse, scale, causal, gradients)
      : backward<c10::BFloat16>(h, dout, q, k, v, out, lse, scale, causal, gradients);
  return {dq, dk, dv};
}

}  // namespace

void add_attention_operators(OperatorLibrary& library) {
  library.add<&attention, &attention_meta>(
      "attention(Tensor q, Tensor k, Tensor v, int head_dim, float scale, bool causal)"
      " -> (Tensor, Tensor)");
  library.add<&attention_backward, &attention_backward_meta>(
      "attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse,"
      " int head_dim, float scale, bool causal) -> (Tensor, Tensor, Tensor)");
}

std::tuple<Tensor, Tensor> call_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                          int64_t head_dim, double scale, bool causal) {
  static const auto op = find_operator<decltype(attention)>("assay_fused::attention");
  return op.call(q, k, v, head_dim, scale, causal);
}
std::tuple<Tensor, Tensor, Tensor> call_attention_backward(const Tensor& dout, const Tensor& q,
                                                           const Tensor& k, const Tensor& v,
                                                           const Tensor& out, const Tensor& lse,
                                                           int64_t head_dim, double scale,
                                                           bool causal) {
  static const auto op =
      find_operator<decltype(attention_backward)>("assay_fused::attention_backward");
  return op.call(dout, q, k, v, out, lse, head_dim, scale, causal);
}

}  // namespace assay::fused
