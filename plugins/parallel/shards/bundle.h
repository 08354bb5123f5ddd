// Bundle: parameters that travel in one message, and how their shards lie in it.
#pragma once

#include <cstdint>
#include <vector>

#include "assay/parallel.h"

namespace assay::parallel {

/// Cuts dimension 0 of the local box in n equal chunks of ceil(d0 / n) rows, the last ones smaller
/// or empty (per-parameter sharding, arXiv:2304.11277 as in FSDP2); n = size of shard_group().
/// Expert weights with fewer local experts than ranks are cut in dimension 1, which needs no
/// padding.
void cut_shard(ParameterPlacement& stored, const Mesh& mesh);

/// A message has one slot per rank, and in each slot one padded chunk per member. Padding is never
/// read; its contents are zero.
class Bundle {
 public:
  /// `members`: indices of present parameters of one shard_group().
  Bundle(const RankContext& context, std::vector<size_t> members);

  const std::vector<size_t>& members() const { return members_; }
  Communicator& group() const { return group_; }
  int64_t slot() const { return slot_; }  ///< elements of one rank
  int64_t message() const { return slot_ * group_.size(); }

  /// (slot): this rank's stored values, master -> dtype.
  Tensor pack_masters(at::ScalarType dtype) const;
  /// (message) as an all_gather leaves it -> the weights of the members.
  void unpack_weights(const Tensor& gathered) const;
  /// (message): the gradients in the members' sinks, cut for every rank; zeros where there is none.
  Tensor pack_gradients(at::ScalarType dtype) const;
  /// (slot) as a reduce_scatter leaves it -> the gradients of the members, written or added.
  void unpack_gradients(const Tensor& mine, bool add) const;

 private:
  struct Place {
    int64_t dim = 0;    ///< that dp_shard cut
    int64_t chunk = 0;  ///< of that dimension per rank
    Shape padded{};     ///< shape of a padded chunk
    int64_t offset = 0, numel = 0;
  };

  /// The part of `local` that belongs to rank r.
  Tensor part(const Tensor& local, const Place& place, int64_t r) const;
  /// The place of rank r's part within its slot of a message; same shape as part().
  Tensor within(const Tensor& slot, const Place& place, int64_t size) const;

  std::vector<Parameter>& parameters_;
  std::vector<size_t> members_;
  std::vector<Place> places_;
  Communicator& group_;
  at::Device device_;
  int64_t slot_ = 0;
};

}  // namespace assay::parallel
