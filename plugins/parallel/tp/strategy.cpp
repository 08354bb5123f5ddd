// Which axis of which weight is cut.
#include "tp.h"
#include "tp_ops.h"

namespace assay::parallel {
namespace {

bool is_cut_axis(Axis axis) {
  return axis == Axis::vocab || axis == Axis::heads || axis == Axis::kv_heads || axis == Axis::ffn;
}

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
