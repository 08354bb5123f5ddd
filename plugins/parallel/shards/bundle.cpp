// Packing is copies of row blocks; with dimension 0 cut they are contiguous.
#include "bundle.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "assay/error.h"

namespace assay::parallel {
namespace {

int64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

void cut_shard(ParameterPlacement& stored, const Mesh& mesh) {
  const MeshGroup group = stored.shard_group();
  const int64_t n = mesh.size(group);
  const bool few_experts = group == MeshGroup::efsdp && n > stored.box().size.at(0);
  stored.cut(MeshDim::dp_shard, few_experts ? 1 : 0, n, mesh.index(group));
}

Bundle::Bundle(const RankContext& context, std::vector<size_t> members)
    : parameters_(context.parameters),
      members_(std::move(members)),
      group_(context.groups(parameters_.at(members_.at(0)).placement.shard_group())),
      device_(context.device) {
  for (const size_t member : members_) {
    const Parameter& p = parameters_[member];
    const auto dim = p.stored.cut_by(MeshDim::dp_shard);
    ASSAY_CHECK(dim.has_value(), p.spec.name + " is not cut by dp_shard");
    Place place{.dim = *dim, .padded = p.placement.box().size, .offset = slot_};
    int64_t& rows = place.padded[static_cast<size_t>(*dim)];
    rows = place.chunk = (rows + group_.size() - 1) / group_.size();
    place.numel = product(place.padded);
    slot_ += place.numel;
    places_.push_back(std::move(place));
  }
}

Tensor Bundle::part(const Tensor& local, const Place& place, int64_t r) const {
  const int64_t rows = local.size(place.dim), begin = std::min(r * place.chunk, rows);
  return local.narrow(place.dim, begin, std::min(place.chunk, rows - begin));
}

Tensor Bundle::within(const Tensor& slot, const Place& place, int64_t size) const {
  return slot.narrow(0, place.offset, place.numel).view(place.padded).narrow(place.dim, 0, size);
}

Tensor Bundle::pack_masters(at::ScalarType dtype) const {
  const Tensor slot = at::zeros({slot_}, at::TensorOptions(dtype).device(device_));
  for (size_t i = 0; i < members_.size(); ++i) {
    const Tensor& master = parameters_[members_[i]].master;
    within(slot, places_[i], master.size(places_[i].dim)).copy_(master);
  }
  return slot;
}

void Bundle::unpack_weights(const Tensor& gathered) const {
  const Tensor slots = gathered.view({group_.size(), slot_});
  for (size_t i = 0; i < members_.size(); ++i) {
    for (int64_t r = 0; r < group_.size(); ++r) {
      Tensor to = part(parameters_[members_[i]].weight, places_[i], r);
      to.copy_(within(slots.select(0, r), places_[i], to.size(places_[i].dim)));
    }
  }
}

Tensor Bundle::pack_gradients(at::ScalarType dtype) const {
  const Tensor slots = at::zeros({group_.size(), slot_}, at::TensorOptions(dtype).device(device_));
  for (size_t i = 0; i < members_.size(); ++i) {
    const GradientSink& sink = parameters_[members_[i]].sink;
    if (!sink.has_gradient()) continue;
    for (int64_t r = 0; r < group_.size(); ++r) {
      const Tensor from = part(sink.total(), places_[i], r);
      within(slots.select(0, r), places_[i], from.size(places_[i].dim)).copy_(from);
    }
  }
  return slots.flatten();
}

void Bundle::unpack_gradients(const Tensor& mine, bool add) const {
  for (size_t i = 0; i < members_.size(); ++i) {
    Tensor& gradient = parameters_[members_[i]].gradient;
    const Tensor value = within(mine, places_[i], gradient.size(places_[i].dim));
    add ? gradient.add_(value) : gradient.copy_(value);
  }
}

}  // namespace assay::parallel
