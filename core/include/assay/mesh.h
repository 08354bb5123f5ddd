// Mesh: the ranks of a run on named dimensions; GroupMap: their communicators, connected on demand.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "assay/api.h"
#include "assay/communicator.h"

namespace assay {

/// Order of the rank number, outermost first. ep is cut out of dp_shard * cp * tp, tp fastest.
enum class MeshDim { pp, dp_replicate, dp_shard, cp, tp, ep };

/// A dimension, or a flattened set of dimensions:
/// batch = dp_replicate * dp_shard, loss = batch * cp, fsdp = dp_shard * cp,
/// efsdp = dp_shard * cp * tp / ep (ranks that hold the same experts), world = all.
enum class MeshGroup { pp, dp_replicate, dp_shard, cp, tp, ep, batch, loss, fsdp, efsdp, world };

ASSAY_API const char* name_of(MeshDim dim);
ASSAY_API const char* name_of(MeshGroup group);
ASSAY_API MeshDim parse_mesh_dim(std::string_view name);  ///< throws Error
constexpr MeshGroup group_of(MeshDim dim) { return static_cast<MeshGroup>(dim); }

struct MeshDegrees {
  int64_t pp = 1;
  int64_t dp_replicate = 1;
  int64_t dp_shard = 1;
  int64_t cp = 1;
  int64_t tp = 1;
  int64_t ep = 1;  ///< not part of the world: divides dp_shard * cp * tp

  int64_t world() const { return pp * dp_replicate * dp_shard * cp * tp; }
};

/// The mesh as one rank sees it.
class ASSAY_API Mesh {
 public:
  /// Throws Error [R-MESH] for a degree < 1, an ep that does not divide or a rank outside.
  explicit Mesh(const MeshDegrees& degrees = {}, int rank = 0);

  int rank() const { return rank_; }
  int64_t world() const { return degrees_.world(); }
  const MeshDegrees& degrees() const { return degrees_; }
  int64_t degree(MeshDim dim) const;
  int64_t coordinate(MeshDim dim) const;  ///< of this rank

  /// Global ranks of this rank's group, ascending, and this rank's place among them.
  std::vector<int> ranks(MeshGroup group) const;
  int64_t size(MeshGroup group) const;
  int64_t index(MeshGroup group) const;

 private:
  MeshDegrees degrees_;
  int rank_;
};

/// The communicators of one rank. Connecting is collective: a request connects every group that
/// precedes it in MeshGroup as well, so all ranks connect in one order whatever they ask first.
class ASSAY_API GroupMap {
 public:
  /// Without a backend every group must have size 1, or `fake` answers for meta runs.
  GroupMap(const Mesh& mesh, std::shared_ptr<CommBackend> backend, GroupSpec defaults = {});
  ~GroupMap();

  Communicator& operator()(MeshGroup group);
  Communicator& operator()(MeshDim dim) { return (*this)(group_of(dim)); }

  std::vector<Traffic> traffic() const;  ///< of all groups
  double exposed_s() const;
  void reset_traffic();

 private:
  static constexpr size_t kGroups = static_cast<size_t>(MeshGroup::world) + 1;
  void connect(MeshGroup group);

  Mesh mesh_;
  std::shared_ptr<CommBackend> backend_;
  GroupSpec defaults_;  ///< rendezvous, time-out and device of every group
  std::array<std::shared_ptr<Communicator>, kGroups> groups_;
};

}  // namespace assay
