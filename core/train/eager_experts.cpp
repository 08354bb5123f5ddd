// Autograd around the kernels of expert_kernels.h.
#include "core/train/eager_experts.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "assay/primitive.h"
#include "core/train/expert_kernels.h"

namespace assay::train {
namespace {

constexpr double kGateEpsilon = 1e-20;  // of the sum that normalised gates are divided by

Tensor logits_of(const Tensor& x, const Weight& router) {
  return primitive(
      {x},
      [&](const Tensors& in, Tensors& saved) {
        saved = {in[0]};
        return Tensors{call_router(in[0], router.tensor)};
      },
      [router](const Tensors& saved, const Tensors& dy) {
        if (!dy[0].defined()) return Tensors{Tensor()};
        const Tensor &input = saved[0], &dlogits = dy[0];
        router.sink->add(
            [dlogits, input] { return dlogits.t().mm(input.to(dlogits.scalar_type())); });
        return Tensors{dlogits.mm(router.tensor.to(dlogits.scalar_type())).to(input.scalar_type())};
      })[0];
}

/// Padded rows of each expert: counts as they are, on meta uniform.
std::vector<int64_t> padded(const Tensor& counts, int64_t pairs, int64_t pad_rows) {
  const int64_t experts = counts.numel();
  std::vector<int64_t> rows(static_cast<size_t>(experts));
  if (counts.is_meta()) {
    for (int64_t e = 0; e < experts; ++e) {
      rows[static_cast<size_t>(e)] = pairs / experts + (e < pairs % experts ? 1 : 0);
    }
  } else {
    const Tensor host = counts.to(at::kCPU);
    std::copy_n(host.const_data_ptr<int64_t>(), experts, rows.begin());
  }
  for (int64_t& n : rows) n = (n + pad_rows - 1) / pad_rows * pad_rows;
  return rows;
}

}  // namespace

Routing eager_route(const Tensor& x, const Weight& router, const Tensor& bias,
                    const RouteSpec& spec) {
  Routing r;
  r.logits = logits_of(x, router);
  r.scores = spec.sigmoid ? r.logits.sigmoid() : r.logits.softmax(-1);
  std::tie(r.experts, r.counts) = call_choose_experts(r.scores.detach(), bias, spec);
  r.gates = r.scores.gather(1, r.experts);
  if (spec.normalise) r.gates = r.gates.div(r.gates.sum(-1, /*keepdim=*/true).add(kGateEpsilon));
  if (spec.scale != 1.0) r.gates = r.gates.mul(spec.scale);
  return r;
}

Dispatch eager_dispatch(const Tensor& x, const Tensor& experts, int64_t expert_count,
                        int64_t pad_rows) {
  Dispatch d;
  const auto [place, counts] = call_place_rows(experts, expert_count, pad_rows);
  d.place = place;
  d.expert_rows = padded(counts, experts.numel(), pad_rows);
  const int64_t rows = std::accumulate(d.expert_rows.begin(), d.expert_rows.end(), int64_t{0});
  d.rows = primitive(
      {x},
      [&](const Tensors& in, Tensors& saved) {
        saved = {d.place};
        return Tensors{call_dispatch(in[0], d.place, std::nullopt, rows)};
      },
      [](const Tensors& saved, const Tensors& dy) {
        return Tensors{call_combine(dy[0], saved[0], std::nullopt)};
      })[0];
  return d;
}

Tensors eager_grouped_linear(const Tensor& x, std::span<const int64_t> expert_rows,
                             std::span<const Weight> weights) {
  const std::vector<int64_t> rows(expert_rows.begin(), expert_rows.end());
  return primitive(
      {x},
      [&](const Tensors& in, Tensors& saved) {
        saved = {in[0]};
        Tensors tensors;
        for (const Weight& w : weights) tensors.push_back(w.tensor);
        return call_grouped_linear(in[0], tensors, rows);
      },
      [rows, weights = std::vector<Weight>(weights.begin(), weights.end())](const Tensors& saved,
                                                                            const Tensors& dys) {
        const Tensor& input = saved[0];
        for (size_t i = 0; i < weights.size(); ++i) {
          if (!dys[i].defined()) continue;
          weights[i].sink->add(
              [dy = dys[i], input, rows] { return grouped_dweight(dy, input, rows); });
        }
        return Tensors{grouped_dx(dys, weights, rows)};
      });
}

Tensor eager_combine(const Tensor& y, const Dispatch& dispatch, const Tensor& gates) {
  Tensors inputs{y};
  if (gates.defined()) inputs.push_back(gates);
  const auto gates_of = [](const Tensors& in) {
    return in.size() > 2 ? std::optional<Tensor>(in[2]) : std::nullopt;
  };
  return primitive(
      inputs,
      [&](const Tensors& in, Tensors& saved) {
        saved = {dispatch.place};
        const bool gated = in.size() > 1;
        if (gated) saved.insert(saved.end(), in.begin(), in.end());  // place, y, gates
        return Tensors{call_combine(in[0], dispatch.place, gates_of(saved))};
      },
      [gates_of, rows = y.size(0)](const Tensors& saved, const Tensors& dy) {
        const Tensor dout = dy[0].contiguous();
        const auto gates = gates_of(saved);
        Tensors gradients{call_dispatch(dout, saved[0], gates, rows)};
        if (gates) gradients.push_back(call_combine_dgates(dout, saved[1], saved[0]));
        return gradients;
      })[0];
}

}  // namespace assay::train
