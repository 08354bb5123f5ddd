// Cuts, and the layer of the ops stack that looks at the cut of a weight and at nothing else.
#include "tp.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

#include <optional>

#include "assay/collectives.h"
#include "assay/ops.h"
#include "assay/plugin.h"
#include "assay/saved_again.h"

namespace assay::parallel {
namespace {

constexpr int64_t kSequence = 1;  // dimension of (B, S, D)

bool is_cut_axis(Axis axis) {
  return axis == Axis::vocab || axis == Axis::heads || axis == Axis::kv_heads || axis == Axis::ffn;
}

class TpOps final : public OpsLayer {
 public:
  TpOps(std::unique_ptr<Ops> next, const TpOptions& options, const RankContext& context)
      : OpsLayer(std::move(next)),
        options_(options),
        group_(context.groups(MeshDim::tp)),
        columns_(context.counters["tp.column"]),
        rows_(context.counters["tp.row"]) {}

  Tensor embedding(const Tensor& anchor, const Tensor& ids, const Weight& table) override {
    if (!cut_of(table)) return next().embedding(anchor, ids, table);
    const Tensor local = local_ids(ids, table);
    const Tensor y = next().embedding(anchor, local.clamp_min(0), table);
    return leave(y.mul(local.ge(0).unsqueeze(-1).to(y.scalar_type())));
  }

  Tensors linear(const Tensor& x, std::span<const Weight> weights) override {
    const auto cut = cut_of(weights[0]);
    if (!cut) return next().linear(x, weights);
    if (*cut == 0) return column(x, weights);
    Tensors out = next().linear(x, weights);
    for (Tensor& y : out) y = leave(y);
    return out;
  }

  // The shards' maxima and sums are merged; every rank ends with the statistics of the whole row.
  CrossEntropyStats ce_stats(const Tensor& hidden, const Weight& head,
                             const Tensor& labels) override {
    if (!cut_of(head)) return next().ce_stats(hidden, head, labels);
    const CrossEntropyStats part = next().ce_stats(enter(hidden), head, local_ids(labels, head));
    const Tensor max = all_reduce_max(part.max, group_);
    return {max, all_reduce(part.sum_exp.mul(part.max.sub(max).exp()), group_),
            all_reduce(part.target, group_)};
  }

 private:
  static std::optional<int64_t> cut_of(const Weight& weight) {
    return weight.placement->cut_by(MeshDim::tp);
  }

  Tensors column(const Tensor& x, std::span<const Weight> weights) {
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

  Tensor enter(const Tensor& x) {
    ++columns_;
    return options_.sp ? all_gather(x, group_, kSequence) : replicate(x, group_);
  }

  Tensor leave(const Tensor& x) {
    ++rows_;
    return options_.sp ? reduce_scatter(x, group_, kSequence) : all_reduce(x, group_);
  }

  // Ids within this rank's part of the vocabulary; -1 for those of other ranks.
  static Tensor local_ids(const Tensor& ids, const Weight& weight) {
    const Box& box = weight.placement->box();
    const Tensor local = ids.sub(box.begin[0]);
    const Tensor mine = local.ge(0).logical_and(local.lt(box.size[0]));
    return at::where(mine, local, -1);
  }

  const TpOptions options_;
  Communicator& group_;
  int64_t& columns_;
  int64_t& rows_;
};

}  // namespace

void Tp::place(ParameterPlacement& placement, const Mesh& mesh) const {
  const auto& axes = placement.spec().axes;
  if (placement.dim_of(Axis::expert)) {
    // Tokens differ between tp ranks under sp; dp_shard's reduction covers tp where it is in use.
    if (options_.sp && mesh.size(MeshGroup::fsdp) == 1) placement.partial_over = MeshGroup::efsdp;
    return;
  }
  for (size_t d = 0; d < axes.size(); ++d) {
    if (!is_cut_axis(axes[d].axis)) continue;
    placement.cut(MeshDim::tp, static_cast<int64_t>(d), mesh.degree(MeshDim::tp),
                  mesh.coordinate(MeshDim::tp));
    return;
  }
  // A whole weight: applied to this rank's part of the sequence (sp) or of the heads.
  if (options_.sp || placement.dim_of(Axis::head_dim)) placement.partial_over = MeshGroup::tp;
}

int64_t Tp::sequence_parts(const Mesh& mesh) const {
  return options_.sp ? mesh.degree(MeshDim::tp) : 1;
}

std::unique_ptr<Ops> Tp::wrap_ops(std::unique_ptr<Ops> next, const RankContext& context) {
  return std::make_unique<TpOps>(std::move(next), options_, context);
}

}  // namespace assay::parallel

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::parallel::Tp>(
      {.name = "tp",
       .summary = "tensor, sequence and loss parallelism",
       .reference = "arXiv:2205.05198",
       .provides = {"meta.safe"},
       .rules =
           {{"R-TPHEADS", "facts.heads % mesh.tp == 0 and facts.kv_heads % mesh.tp == 0",
             "heads cannot be cut: mesh.tp must divide the heads and the kv_heads of the model"},
            {"R-TPFFN", "facts.ffn % mesh.tp == 0", "mesh.tp must divide the ffn width"},
            {"R-SPSEQ", "not sp or model.seq_len % (mesh.tp * mesh.cp) == 0",
             "with sp, mesh.tp times mesh.cp must divide model.seq_len"}},
       .dims = {"tp"}});
}
