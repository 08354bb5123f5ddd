// Cross entropy from hidden states and head weight, a chunk of tokens at a time: the logits of the
// others do not exist.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "kernel_table.h"
#include "operator_groups.h"
#include "operators.h"
#include "product.h"

namespace assay::fused {
namespace {

constexpr int64_t kChunkLogits = 1 << 18;  // 1 MiB of fp32 logits
constexpr int64_t kLeastTokens = 64;       // below it the products lose their speed
constexpr int64_t kLossGrain = 8;

at::ScalarType wide(const Tensor& t) { return statistics_dtype(t.scalar_type()); }

std::tuple<Tensor, Tensor, Tensor> ce_stats_meta(const Tensor& hidden, const Tensor&,
                                                 const Tensor&) {
  const auto make = [&] {
    return at::empty({hidden.size(0)}, hidden.options().dtype(wide(hidden)));
  };
  return {make(), make(), make()};
}

/// Logits of the tokens [begin, begin + rows of `out`), in the statistics dtype.
void logits_into(const Tensor& hidden, const Tensor& head, int64_t begin, const Tensor& out) {
  multiply_into(hidden.narrow(0, begin, out.size(0)), head.t(), out);
}

/// hidden and head in a dtype whose products give the statistics dtype.
Tensor operand(const Tensor& t) {
  const bool widens = t.scalar_type() == at::kBFloat16 && !own_products(at::kBFloat16);
  return (widens ? t.to(at::kFloat) : t).contiguous();
}

template <class Body>
void for_chunks(int64_t tokens, int64_t vocabulary, Body&& body) {
  const int64_t chunk = chunk_tokens(vocabulary);
  for (int64_t begin = 0; begin < tokens; begin += chunk) {
    body(begin, std::min(chunk, tokens - begin));
  }
}

template <class S>
void stats(const Tensor& hidden, const Tensor& head, const Tensor& labels, const Tensor& max,
           const Tensor& sum_exp, const Tensor& target) {
  const int64_t vocabulary = head.size(0);
  const Tensor buffer = at::empty({chunk_tokens(vocabulary), vocabulary}, max.options());
  for_chunks(hidden.size(0), vocabulary, [&](int64_t first, int64_t tokens) {
    logits_into(hidden, head, first, buffer.narrow(0, 0, tokens));
    const S* logits = buffer.const_data_ptr<S>();
    at::parallel_for(0, tokens, kLossGrain, [&](int64_t begin, int64_t end) {
      const int64_t at = first + begin;
      kernels().loss<S>().stats(logits + begin * vocabulary, labels.const_data_ptr<int64_t>() + at,
                                max.mutable_data_ptr<S>() + at, sum_exp.mutable_data_ptr<S>() + at,
                                target.mutable_data_ptr<S>() + at, end - begin, vocabulary);
    });
  });
}

std::tuple<Tensor, Tensor, Tensor> ce_stats(const Tensor& hidden, const Tensor& head,
                                            const Tensor& labels) {
  const auto [max, sum_exp, target] = ce_stats_meta(hidden, head, labels);
  const Tensor h = operand(hidden), w = operand(head), l = labels.contiguous();
  max.scalar_type() == at::kDouble ? stats<double>(h, w, l, max, sum_exp, target)
                                   : stats<float>(h, w, l, max, sum_exp, target);
  return {max, sum_exp, target};
}

std::tuple<Tensor, Tensor> ce_backward_meta(const Tensor& hidden, const Tensor& head, const Tensor&,
                                            const Tensor&, const Tensor&, const Tensor&) {
  return {at::empty(hidden.sizes(), hidden.options()),
          at::empty(head.sizes(), head.options().dtype(wide(head)))};
}

struct LossGradients {
  Tensor max, dsum, dtarget;
};

template <class S>
void dlogits_of_chunk(const LossGradients& g, const Tensor& labels, int64_t first,
                      const Tensor& logits) {
  const int64_t vocabulary = logits.size(1);
  S* data = logits.mutable_data_ptr<S>();
  at::parallel_for(0, logits.size(0), kLossGrain, [&](int64_t begin, int64_t end) {
    const int64_t at = first + begin;
    kernels().loss<S>().dlogits(data + begin * vocabulary, labels.const_data_ptr<int64_t>() + at,
                                g.max.const_data_ptr<S>() + at, g.dsum.const_data_ptr<S>() + at,
                                g.dtarget.const_data_ptr<S>() + at, end - begin, vocabulary);
  });
}

std::tuple<Tensor, Tensor> ce_backward(const Tensor& hidden, const Tensor& head,
                                       const Tensor& labels_in, const Tensor& max,
                                       const Tensor& dsum, const Tensor& dtarget) {
  const int64_t tokens_in_all = hidden.size(0), vocabulary = head.size(0);
  const Tensor h = operand(hidden), w = operand(head), labels = labels_in.contiguous();
  const Tensor h_wide = h.to(wide(hidden)), w_wide = w.to(wide(hidden));
  const LossGradients g{max.contiguous(), dsum.contiguous(), dtarget.contiguous()};
  const Tensor dhidden = at::empty(hidden.sizes(), w_wide.options());
  const Tensor dhead = at::zeros(head.sizes(), w_wide.options());
  const Tensor buffer = at::empty({chunk_tokens(vocabulary), vocabulary}, w_wide.options());
  for_chunks(tokens_in_all, vocabulary, [&](int64_t first, int64_t tokens) {
    const Tensor logits = buffer.narrow(0, 0, tokens);
    logits_into(h, w, first, logits);
    logits.scalar_type() == at::kDouble ? dlogits_of_chunk<double>(g, labels, first, logits)
                                        : dlogits_of_chunk<float>(g, labels, first, logits);
    multiply_into(logits, w_wide, dhidden.narrow(0, first, tokens));
    multiply_into(logits.t(), h_wide.narrow(0, first, tokens), dhead, /*accumulate=*/true);
  });
  return {dhidden.to(hidden.scalar_type()), dhead};
}

}  // namespace

int64_t chunk_tokens(int64_t vocabulary) {
  return std::max(kLeastTokens, kChunkLogits / std::max<int64_t>(1, vocabulary));
}

void add_loss_operators(OperatorLibrary& library) {
  library.add<&ce_stats, &ce_stats_meta>(
      "ce_stats(Tensor hidden, Tensor head, Tensor labels) -> (Tensor, Tensor, Tensor)");
  library.add<&ce_backward, &ce_backward_meta>(
      "ce_backward(Tensor hidden, Tensor head, Tensor labels, Tensor max, Tensor dsum,"
      " Tensor dtarget) -> (Tensor, Tensor)");
}

std::tuple<Tensor, Tensor, Tensor> call_ce_stats(const Tensor& hidden, const Tensor& head,
                                                 const Tensor& labels) {
  static const auto op = find_operator<decltype(ce_stats)>("assay_fused::ce_stats");
  return op.call(hidden, head, labels);
}
std::tuple<Tensor, Tensor> call_ce_backward(const Tensor& hidden, const Tensor& head,
                                            const Tensor& labels, const Tensor& max,
                                            const Tensor& dsum, const Tensor& dtarget) {
  static const auto op = find_operator<decltype(ce_backward)>("assay_fused::ce_backward");
  return op.call(hidden, head, labels, max, dsum, dtarget);
}

}  // namespace assay::fused
