// Routing and row movement in ATen calls, without atomics: equal inputs give equal bits.
#include "core/train/expert_kernels.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "assay/operators.h"
#include "core/train/product.h"

namespace assay::train {
namespace {

using MaybeTensor = std::optional<Tensor>;

Tensor router(const Tensor& x, const Tensor& weight) {
  const auto wide = statistics_dtype(x.scalar_type());
  return x.to(wide).mm(weight.to(wide).t());
}

at::TensorOptions integers_like(const Tensor& t) { return t.options().dtype(at::kLong); }

/// Ids along the last dimension by falling value, the lower first among equals.
std::tuple<Tensor, Tensor> falling(const Tensor& values) {
  return values.sort(/*stable=*/true, /*dim=*/-1, /*descending=*/true);
}

/// Scores of experts outside of the best groups become -inf (DeepSeek-V2, arXiv:2405.04434, with
/// the group score of V3, arXiv:2412.19437: the sum of the two best).
Tensor close_groups(const Tensor& ranked, int64_t groups, int64_t limited) {
  const Tensor grouped = ranked.view({ranked.size(0), groups, -1});
  const Tensor group_scores = std::get<0>(falling(grouped)).narrow(-1, 0, 2).sum(-1);
  const Tensor best = std::get<1>(falling(group_scores)).narrow(-1, 0, limited);
  const Tensor closed = at::ones(group_scores.sizes(), ranked.options().dtype(at::kBool))
                            .scatter_(1, best, /*value=*/0);
  const double lowest = -std::numeric_limits<double>::infinity();
  return grouped.masked_fill(closed.unsqueeze(-1), lowest).view(ranked.sizes());
}

Tensor counts_of(const Tensor& experts, int64_t expert_count) {
  const Tensor flat = experts.flatten();
  return at::zeros({expert_count}, experts.options()).scatter_add_(0, flat, at::ones_like(flat));
}

std::tuple<Tensor, Tensor> choose_experts(const Tensor& scores, const MaybeTensor& bias,
                                          int64_t top_k, int64_t groups, int64_t limited,
                                          bool force_balance) {
  const int64_t tokens = scores.size(0), experts = scores.size(1);
  Tensor chosen;
  if (force_balance) {
    chosen = at::arange(tokens * top_k, integers_like(scores)).remainder_(experts);
    chosen = chosen.view({tokens, top_k});
  } else {
    Tensor ranked = bias ? scores.add(bias->to(scores.scalar_type())) : scores;
    if (groups > 1) ranked = close_groups(ranked, groups, limited);
    chosen = std::get<1>(falling(ranked)).narrow(1, 0, top_k).contiguous();
  }
  return {chosen, counts_of(chosen, experts)};
}

std::tuple<Tensor, Tensor> choose_experts_meta(const Tensor& scores, const MaybeTensor&,
                                               int64_t top_k, int64_t, int64_t, bool) {
  const auto options = integers_like(scores);
  return {at::empty({scores.size(0), top_k}, options), at::empty({scores.size(1)}, options)};
}

std::tuple<Tensor, Tensor> place_rows(const Tensor& experts, int64_t expert_count,
                                      int64_t pad_rows) {
  const Tensor flat = experts.flatten();
  const Tensor counts = counts_of(experts, expert_count);
  const Tensor padded = counts.add(pad_rows - 1).floor_divide(pad_rows).mul_(pad_rows);
  const Tensor gaps = padded.cumsum(0).sub_(padded).sub_(counts.cumsum(0)).add_(counts);
  const Tensor order = flat.argsort(/*stable=*/true, 0, /*descending=*/false);
  const Tensor rows = at::arange(flat.numel(), flat.options())
                          .add_(gaps.index_select(0, flat.index_select(0, order)));
  return {at::empty_like(flat).scatter_(0, order, rows).view(experts.sizes()), counts};
}

std::tuple<Tensor, Tensor> place_rows_meta(const Tensor& experts, int64_t expert_count, int64_t) {
  return {at::empty_like(experts), at::empty({expert_count}, experts.options())};
}

/// x times column j of the gates, in the dtype of x.
Tensor gated(const Tensor& x, const Tensor& gates, int64_t slot) {
  return x.to(gates.scalar_type()).mul(gates.narrow(1, slot, 1));
}

Tensor dispatch(const Tensor& x, const Tensor& place, const MaybeTensor& gates, int64_t rows) {
  Tensor out = at::zeros({rows, x.size(1)}, x.options());
  for (int64_t slot = 0; slot < place.size(1); ++slot) {
    const Tensor value = gates ? gated(x, *gates, slot).to(x.scalar_type()) : x;
    out.index_copy_(0, place.select(1, slot), value);
  }
  return out;
}

Tensor dispatch_meta(const Tensor& x, const Tensor&, const MaybeTensor&, int64_t rows) {
  return at::empty({rows, x.size(1)}, x.options());
}

Tensor combine(const Tensor& y, const Tensor& place, const MaybeTensor& gates) {
  Tensor sum;
  for (int64_t slot = 0; slot < place.size(1); ++slot) {
    const Tensor rows = y.index_select(0, place.select(1, slot));
    const Tensor term =
        gates ? gated(rows, *gates, slot) : rows.to(statistics_dtype(y.scalar_type()));
    sum = sum.defined() ? sum.add_(term) : term;
  }
  return sum.to(y.scalar_type());
}

Tensor combine_meta(const Tensor& y, const Tensor& place, const MaybeTensor&) {
  return at::empty({place.size(0), y.size(1)}, y.options());
}

Tensor combine_dgates(const Tensor& dout, const Tensor& y, const Tensor& place) {
  const auto wide = statistics_dtype(y.scalar_type());
  const Tensor gradient = dout.to(wide);
  Tensor dgates = at::empty(place.sizes(), y.options().dtype(wide));
  for (int64_t slot = 0; slot < place.size(1); ++slot) {
    const Tensor rows = y.index_select(0, place.select(1, slot));
    dgates.select(1, slot).copy_(gradient.mul(rows).sum(-1));
  }
  return dgates;
}

Tensor combine_dgates_meta(const Tensor&, const Tensor& y, const Tensor& place) {
  return at::empty(place.sizes(), y.options().dtype(statistics_dtype(y.scalar_type())));
}

/// Calls each(expert, first row, rows) for the experts that have any.
template <class Each>
void for_experts(at::IntArrayRef expert_rows, const Each& each) {
  int64_t begin = 0;
  for (size_t e = 0; e < expert_rows.size(); ++e) {
    if (expert_rows[e] > 0) each(static_cast<int64_t>(e), begin, expert_rows[e]);
    begin += expert_rows[e];
  }
}

Tensors grouped_linear(const Tensor& x, at::TensorList weights, at::IntArrayRef expert_rows) {
  Tensors outputs;
  for (const Tensor& w : weights) {
    Tensor y = at::empty({x.size(0), w.size(1)}, x.options());
    for_experts(expert_rows, [&](int64_t e, int64_t begin, int64_t rows) {
      product_to(y.narrow(0, begin, rows), x.narrow(0, begin, rows), w.select(0, e).t());
    });
    outputs.push_back(std::move(y));
  }
  return outputs;
}

struct ExpertOperators {
  OperatorLibrary library{"assay"};
  ExpertOperators() {
    library.add<&router>("router(Tensor x, Tensor weight) -> Tensor");
    library.add<&choose_experts, &choose_experts_meta>(
        "choose_experts(Tensor scores, Tensor? bias, int top_k, int groups, int limited,"
        " bool force_balance) -> (Tensor, Tensor)");
    library.add<&place_rows, &place_rows_meta>(
        "place_rows(Tensor experts, int expert_count, int pad_rows) -> (Tensor, Tensor)");
    library.add<&dispatch, &dispatch_meta>(
        "dispatch(Tensor x, Tensor place, Tensor? gates, int rows) -> Tensor");
    library.add<&combine, &combine_meta>(
        "combine(Tensor y, Tensor place, Tensor? gates) -> Tensor");
    library.add<&combine_dgates, &combine_dgates_meta>(
        "combine_dgates(Tensor dout, Tensor y, Tensor place) -> Tensor");
    library.add<&grouped_linear>(
        "grouped_linear(Tensor x, Tensor[] weights, int[] expert_rows) -> Tensor[]");
  }
};

MaybeTensor maybe(const Tensor& t) { return t.defined() ? MaybeTensor(t) : std::nullopt; }

}  // namespace

void register_expert_kernels() {
  static ExpertOperators* operators = new ExpertOperators;  // for the life of the process
  (void)operators;
}

// One typed handle per operator, found on the first call.
#define ASSAY_CALL(kernel, ...)                                              \
  register_expert_kernels();                                                 \
  static const auto op = find_operator<decltype(kernel)>("assay::" #kernel); \
  return op.call(__VA_ARGS__)

Tensor call_router(const Tensor& x, const Tensor& weight) { ASSAY_CALL(router, x, weight); }
std::tuple<Tensor, Tensor> call_choose_experts(const Tensor& scores, const Tensor& bias,
                                               const RouteSpec& spec) {
  ASSAY_CALL(choose_experts, scores, maybe(bias), spec.top_k, spec.groups, spec.limited_groups,
             spec.force_balance);
}
std::tuple<Tensor, Tensor> call_place_rows(const Tensor& experts, int64_t expert_count,
                                           int64_t pad_rows) {
  ASSAY_CALL(place_rows, experts, expert_count, pad_rows);
}
Tensor call_dispatch(const Tensor& x, const Tensor& place, const MaybeTensor& gates, int64_t rows) {
  ASSAY_CALL(dispatch, x, place, gates, rows);
}
Tensor call_combine(const Tensor& y, const Tensor& place, const MaybeTensor& gates) {
  ASSAY_CALL(combine, y, place, gates);
}
Tensor call_combine_dgates(const Tensor& dout, const Tensor& y, const Tensor& place) {
  ASSAY_CALL(combine_dgates, dout, y, place);
}
Tensors call_grouped_linear(const Tensor& x, at::TensorList weights, at::IntArrayRef expert_rows) {
  ASSAY_CALL(grouped_linear, x, weights, expert_rows);
}

#undef ASSAY_CALL

Tensor grouped_dx(const Tensors& dys, std::span<const Weight> weights,
                  at::IntArrayRef expert_rows) {
  Tensor dx;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!dys[i].defined()) continue;
    const Tensor& w = weights[i].tensor;
    const bool first = !dx.defined();
    if (first) dx = at::empty({dys[i].size(0), w.size(2)}, dys[i].options());
    for_experts(expert_rows, [&](int64_t e, int64_t begin, int64_t rows) {
      const Tensor part = dx.narrow(0, begin, rows), dy = dys[i].narrow(0, begin, rows);
      if (first) {
        product_to(part, dy, w.select(0, e));
      } else {
        add_product(part, dy, w.select(0, e));
      }
    });
  }
  return dx;
}

Tensor grouped_dweight(const Tensor& dy, const Tensor& x, at::IntArrayRef expert_rows) {
  Tensor dw =
      at::zeros({static_cast<int64_t>(expert_rows.size()), dy.size(1), x.size(1)}, dy.options());
  for_experts(expert_rows, [&](int64_t e, int64_t begin, int64_t rows) {
    product_to(dw.select(0, e), dy.narrow(0, begin, rows).t(), x.narrow(0, begin, rows));
  });
  return dw;
}

}  // namespace assay::train
