// Boxes: how cuts divide a parameter, and names of axes and roles.
#include <algorithm>
#include <functional>
#include <numeric>

#include "assay/error.h"
#include "assay/parameter.h"

namespace assay {

const char* name_of(Axis axis) {
  switch (axis) {
    case Axis::vocab:
      return "vocab";
    case Axis::hidden:
      return "hidden";
    case Axis::heads:
      return "heads";
    case Axis::kv_heads:
      return "kv_heads";
    case Axis::head_dim:
      return "head_dim";
    case Axis::ffn:
      return "ffn";
    case Axis::expert:
      return "expert";
    case Axis::none:
      return "none";
  }
  return "unknown";
}

const char* name_of(ParameterRole role) {
  switch (role) {
    case ParameterRole::embedding:
      return "embedding";
    case ParameterRole::matrix:
      return "matrix";
    case ParameterRole::head:
      return "head";
    case ParameterRole::norm:
      return "norm";
    case ParameterRole::bias:
      return "bias";
    case ParameterRole::router:
      return "router";
  }
  return "unknown";
}

int64_t Box::numel() const {
  return std::accumulate(size.begin(), size.end(), int64_t{1}, std::multiplies<>());
}

Box whole(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }

ParameterPlacement::ParameterPlacement(const ParameterSpec& spec)
    : spec_(spec), box_(whole(spec.shape)) {}

void ParameterPlacement::cut(MeshDim mesh_dim, int64_t dim, int64_t degree, int64_t index) {
  const auto d = static_cast<size_t>(dim);
  ASSAY_CHECK(d < box_.size.size() && index < degree, "a cut outside of parameter " + spec_.name);
  const bool by_meaning = mesh_dim != MeshDim::dp_shard && d < spec_.axes.size();
  const int64_t granule = by_meaning ? spec_.axes[d].granule : 1;
  const int64_t granules = (box_.size[d] + granule - 1) / granule;
  const int64_t chunk = (granules + degree - 1) / degree * granule;
  const int64_t begin = std::min(index * chunk, box_.size[d]);
  box_.begin[d] += begin;
  box_.size[d] = std::min(chunk, box_.size[d] - begin);
  cuts_.push_back({mesh_dim, dim});
}

std::optional<int64_t> ParameterPlacement::cut_by(MeshDim mesh_dim) const {
  for (const Cut& cut : cuts_) {
    if (cut.mesh_dim == mesh_dim) return cut.tensor_dim;
  }
  return std::nullopt;
}

std::optional<int64_t> ParameterPlacement::dim_of(Axis axis) const {
  for (size_t d = 0; d < spec_.axes.size(); ++d) {
    if (spec_.axes[d].axis == axis) return static_cast<int64_t>(d);
  }
  return std::nullopt;
}

MeshGroup ParameterPlacement::shard_group() const {
  return dim_of(Axis::expert) ? MeshGroup::efsdp : MeshGroup::fsdp;
}

}  // namespace assay
