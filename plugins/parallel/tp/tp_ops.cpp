// Entering and leaving the region in which weights are cut.
#include "tp_ops.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "assay/collectives.h"
#include "assay/saved_again.h"

namespace assay::parallel {
namespace {

std::optional<int64_t> cut_of(const Weight& weight) {
  return weight.placement->cut_by(MeshDim::tp);
}

// Ids within this rank's part of the vocabulary; -1 for those of other ranks.
Tensor local_ids(const Tensor& ids, const Weight& weight) {
  const Box& box = weight.placement->box();
  const Tensor local = ids.sub(box.begin[0]);
  const Tensor mine = local.ge(0).bitwise_and(local.lt(box.size[0]));
  return local.add(1).mul(mine.to(at::kLong)).sub(1);  // where() has no meta kernel
}

}  // namespace

TpOps::TpOps(std::unique_ptr<Ops> next, const TpOptions& options, const RankContext& context)
    : OpsLayer(std::move(next)),
      options_(options),
      group_(context.groups(MeshDim::tp)),
      columns_(context.counters["tp.column"]),
      rows_(context.counters["tp.row"]) {}

Tensor TpOps::embedding(const Tensor& anchor, const Tensor& ids, const Weight& table) {
  if (!cut_of(table)) return next().embedding(anchor, ids, table);
  const Tensor local = local_ids(ids, table);
  const Tensor y = next().embedding(anchor, local.clamp_min(0), table);
  return leave(y.mul(local.ge(0).unsqueeze(-1).to(y.scalar_type())));
}

Tensors TpOps::linear(const Tensor& x, std::span<const Weight> weights) {
  const auto cut = cut_of(weights[0]);
  if (!cut) return next().linear(x, weights);
  return *cut == 0 ? column(x, weights) : row(x, weights);
}

Tensors TpOps::column(const Tensor& x, std::span<const Weight> weights) {
  const Tensor whole = enter(x);
  std::optional<SavedAgain> again;
  if (options_.sp && options_.regather) {
    const Tensor part = x.detach();
    again.emplace(whole, part, [part, this] {
      const at::NoGradGuard no_grad;
      return all_gather(part, group_, kSequence);
    });
  }
  return next().linear(whole, weights);
}

Tensors TpOps::row(const Tensor& x, std::span<const Weight> weights) {
  Tensors out = next().linear(x, weights);
  for (Tensor& y : out) y = leave(y);
  return out;
}

// The shards' maxima and sums are merged; every rank ends with the statistics of the whole row.
CrossEntropyStats TpOps::ce_stats(const Tensor& hidden, const Weight& head, const Tensor& labels) {
  if (!cut_of(head)) return next().ce_stats(hidden, head, labels);
  const CrossEntropyStats part = next().ce_stats(enter(hidden), head, local_ids(labels, head));
  const Tensor max = all_reduce_max(part.max, group_);
  return {max, all_reduce(part.sum_exp.mul(part.max.sub(max).exp()), group_),
          all_reduce(part.target, group_)};
}

Tensor TpOps::enter(const Tensor& x) {
  ++columns_;
  return options_.sp ? all_gather(x, group_, kSequence) : replicate(x, group_);
}

Tensor TpOps::leave(const Tensor& x) {
  ++rows_;
  return options_.sp ? reduce_scatter(x, group_, kSequence) : all_reduce(x, group_);
}

}  // namespace assay::parallel
