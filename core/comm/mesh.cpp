// Mesh arithmetic: from a rank number to coordinates and to the ranks of each group.
#include "assay/mesh.h"

#include <algorithm>

#include "core/base/nearest.h"

namespace assay {
namespace {

constexpr std::array kDimNames = {"pp", "dp_replicate", "dp_shard", "cp", "tp", "ep"};
constexpr std::array kGroupNames = {"pp",    "dp_replicate", "dp_shard", "cp",    "tp",   "ep",
                                    "batch", "loss",         "fsdp",     "efsdp", "world"};
constexpr size_t kOrdered = 5;  // without ep
using Coordinates = std::array<int64_t, kOrdered>;

Coordinates sizes_of(const MeshDegrees& d) {
  return {d.pp, d.dp_replicate, d.dp_shard, d.cp, d.tp};
}

Coordinates coordinates_of(const MeshDegrees& degrees, int64_t rank) {
  const Coordinates sizes = sizes_of(degrees);
  Coordinates result{};
  for (size_t i = kOrdered; i-- > 0;) {
    result[i] = rank % sizes[i];
    rank /= sizes[i];
  }
  return result;
}

/// Which of the ordered dimensions a group runs over.
std::array<bool, kOrdered> spans(MeshGroup group) {
  switch (group) {
    case MeshGroup::pp:
      return {true, false, false, false, false};
    case MeshGroup::dp_replicate:
      return {false, true, false, false, false};
    case MeshGroup::dp_shard:
      return {false, false, true, false, false};
    case MeshGroup::cp:
      return {false, false, false, true, false};
    case MeshGroup::tp:
      return {false, false, false, false, true};
    case MeshGroup::batch:
      return {false, true, true, false, false};
    case MeshGroup::loss:
      return {false, true, true, true, false};
    case MeshGroup::fsdp:
      return {false, false, true, true, false};
    case MeshGroup::ep:
    case MeshGroup::efsdp:
      return {false, false, true, true, true};
    case MeshGroup::world:
      return {true, true, true, true, true};
  }
  return {};
}

[[noreturn]] void refuse(const std::string& text) { throw Error("[R-MESH] " + text); }

}  // namespace

const char* name_of(MeshDim dim) { return kDimNames[static_cast<size_t>(dim)]; }
const char* name_of(MeshGroup group) { return kGroupNames[static_cast<size_t>(group)]; }

MeshDim parse_mesh_dim(std::string_view name) {
  const auto found = std::find(kDimNames.begin(), kDimNames.end(), name);
  if (found != kDimNames.end()) return static_cast<MeshDim>(found - kDimNames.begin());
  const std::vector<std::string> names(kDimNames.begin(), kDimNames.end());
  throw Error("'" + std::string(name) + "' is not a mesh dimension",
              did_you_mean(nearest(name, names)));
}

Mesh::Mesh(const MeshDegrees& degrees, int rank) : degrees_(degrees), rank_(rank) {
  for (const MeshDim dim : {MeshDim::pp, MeshDim::dp_replicate, MeshDim::dp_shard, MeshDim::cp,
                            MeshDim::tp, MeshDim::ep}) {
    if (degree(dim) < 1) {
      refuse("mesh." + std::string(name_of(dim)) + " is " + std::to_string(degree(dim)) +
             "; a degree is at least 1");
    }
  }
  const int64_t shared = degrees.dp_shard * degrees.cp * degrees.tp;
  if (shared % degrees.ep != 0) {
    refuse("mesh.ep " + std::to_string(degrees.ep) +
           " does not divide dp_shard * cp * tp = " + std::to_string(shared));
  }
  if (rank < 0 || rank >= world()) {
    refuse("rank " + std::to_string(rank) + " is outside a mesh of " + std::to_string(world()) +
           " ranks");
  }
}

int64_t Mesh::degree(MeshDim dim) const {
  return dim == MeshDim::ep ? degrees_.ep : sizes_of(degrees_)[static_cast<size_t>(dim)];
}

int64_t Mesh::coordinate(MeshDim dim) const {
  if (dim == MeshDim::ep) return index(MeshGroup::ep);
  return coordinates_of(degrees_, rank_)[static_cast<size_t>(dim)];
}

std::vector<int> Mesh::ranks(MeshGroup group) const {
  const auto spanned = spans(group);
  const Coordinates mine = coordinates_of(degrees_, rank_);
  std::vector<int> result;
  for (int other = 0; other < world(); ++other) {
    const Coordinates theirs = coordinates_of(degrees_, other);
    bool member = true;
    for (size_t i = 0; i < kOrdered; ++i) member &= spanned[i] || theirs[i] == mine[i];
    if (member) result.push_back(other);
  }
  if (group != MeshGroup::ep && group != MeshGroup::efsdp) return result;
  // Both run over (dp_shard, cp, tp) flattened: ep takes ep neighbours, efsdp every ep-th rank.
  const int64_t me = std::find(result.begin(), result.end(), rank_) - result.begin();
  std::vector<int> chosen;
  for (int64_t i = 0; i < static_cast<int64_t>(result.size()); ++i) {
    const bool same = group == MeshGroup::ep ? i / degrees_.ep == me / degrees_.ep
                                             : i % degrees_.ep == me % degrees_.ep;
    if (same) chosen.push_back(result[static_cast<size_t>(i)]);
  }
  return chosen;
}

int64_t Mesh::size(MeshGroup group) const { return static_cast<int64_t>(ranks(group).size()); }

int64_t Mesh::index(MeshGroup group) const {
  const std::vector<int> members = ranks(group);
  return std::find(members.begin(), members.end(), rank_) - members.begin();
}

}  // namespace assay
