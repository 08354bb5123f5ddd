// The writing half: each rank its shard, then one of them the manifest over all.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/checkpoint/manifest.h"

namespace assay::checkpoint {

/// What a rank writes of one tensor; `data` is row-major and as large as the box.
struct ShardTensor {
  std::string name{};
  TensorKind kind = TensorKind::weight;
  std::string dtype{};
  Shape shape{};  ///< global
  Region box{};
  const std::byte* data = nullptr;
};

/// Writes `rank-00001.safetensors` into `folder` and, when that is on the disk, the list of its
/// chunks, which says that this rank is done. Empty boxes are left out. Gives the bytes of data.
/// Throws InfrastructureError.
int64_t write_shard(const std::filesystem::path& folder, int rank,
                    const std::vector<ShardTensor>& tensors);

/// Waits for the lists of all ranks and joins them. Throws InfrastructureError naming the ranks
/// that did not come in time, or when `abandoned` becomes true.
std::map<std::string, TensorEntry> join_shards(const std::filesystem::path& folder, int64_t world,
                                               double limit_s, const std::atomic<bool>& abandoned);

}  // namespace assay::checkpoint
