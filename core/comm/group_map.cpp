// GroupMap: connects the groups of a mesh on demand, in one order on every rank.
#include "assay/mesh.h"

namespace assay {

GroupMap::GroupMap(const Mesh& mesh, std::shared_ptr<CommBackend> backend, GroupSpec defaults)
    : mesh_(mesh), backend_(std::move(backend)), defaults_(std::move(defaults)) {}

GroupMap::~GroupMap() = default;

void GroupMap::connect(MeshGroup group) {
  auto& slot = groups_[static_cast<size_t>(group)];
  if (slot) return;
  GroupSpec spec = defaults_;
  spec.name = name_of(group);
  spec.ranks = mesh_.ranks(group);
  spec.index = static_cast<int>(mesh_.index(group));
  if (spec.size() == 1) {
    slot = solo_communicator(std::move(spec));
    return;
  }
  ASSAY_CHECK(backend_ != nullptr,
              "group '" + spec.name + "' has more than one rank but there is no comm backend");
  slot = backend_->connect(spec);
}

Communicator& GroupMap::operator()(MeshGroup group) {
  const auto wanted = static_cast<size_t>(group);
  if (!groups_[wanted]) {
    for (size_t i = 0; i <= wanted; ++i) connect(static_cast<MeshGroup>(i));
  }
  return *groups_[wanted];
}

std::vector<Traffic> GroupMap::traffic() const {
  std::vector<Traffic> all;
  for (const auto& group : groups_) {
    if (!group) continue;
    for (Traffic& row : group->traffic()) all.push_back(std::move(row));
  }
  return all;
}

double GroupMap::exposed_s() const {
  double sum = 0;
  for (const auto& group : groups_) sum += group ? group->exposed_s() : 0;
  return sum;
}

void GroupMap::reset_traffic() {
  for (const auto& group : groups_) {
    if (group) group->reset_traffic();
  }
}

}  // namespace assay
