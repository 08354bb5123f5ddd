// A checkpoint written by hand: numbered elements, cut into boxes as a test wants them.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/checkpoint/folder.h"
#include "core/checkpoint/writer.h"

namespace assay::checkpoint {

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() /
              ("assay-checkpoint-" + std::to_string(getpid()) + "-" + std::to_string(count_++))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

/// Element i of a whole tensor is i + `first`.
inline float element(int64_t index, int64_t first) { return static_cast<float>(index + first); }

/// The elements of a box of a numbered tensor.
inline std::vector<float> numbered(const Shape& shape, const Region& box, int64_t first) {
  std::vector<float> values(static_cast<size_t>(volume(box)));
  for_each_run(box, whole(shape), box, [&](int64_t from, int64_t to, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      values[static_cast<size_t>(to + i)] = element(from + i, first);
    }
  });
  return values;
}

/// A tensor and who stores which box of it: boxes[rank].
struct Plan {
  std::string name{};
  Shape shape{};
  std::vector<Region> boxes{};
  int64_t first = 0;
  TensorKind kind = TensorKind::weight;
};

/// Saves `plans` as step `step` below `folder`, each rank its boxes; gives the checkpoint's folder.
inline std::filesystem::path save(const std::filesystem::path& folder,
                                  const std::vector<Plan>& plans, int64_t step = 3) {
  const size_t world = plans.at(0).boxes.size();
  const auto temporary = temporary_folder(folder, step);
  for (size_t rank = 0; rank < world; ++rank) {
    std::vector<ShardTensor> shard;
    std::vector<std::vector<float>> data;
    for (const Plan& p : plans) {
      data.push_back(numbered(p.shape, p.boxes[rank], p.first));
      shard.push_back({.name = p.name,
                       .kind = p.kind,
                       .dtype = "F32",
                       .shape = p.shape,
                       .box = p.boxes[rank],
                       .data = reinterpret_cast<const std::byte*>(data.back().data())});
    }
    write_shard(temporary, static_cast<int>(rank), shard);
  }
  Manifest manifest{.step = step,
                    .seed = 7,
                    .world = static_cast<int64_t>(world),
                    .data = {.fingerprint = std::string(64, 'd'),
                             .next_sample = 8 * step,
                             .global_batch = 8,
                             .seq_len = 16},
                    .config = {{"seed", 7}}};
  const std::atomic<bool> abandoned = false;
  manifest.tensors = join_shards(temporary, manifest.world, 1, abandoned);
  commit(folder, manifest);
  return folder / step_name(step);
}

/// Changes one byte of a file.
inline void flip(const std::filesystem::path& file, uint64_t offset) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(static_cast<std::streamoff>(offset));
  const auto byte = static_cast<char>(stream.get() ^ 0x10);
  stream.seekp(static_cast<std::streamoff>(offset));
  stream.put(byte);
}

/// What is thrown, as text; "nothing" if nothing is.
inline std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace assay::checkpoint
