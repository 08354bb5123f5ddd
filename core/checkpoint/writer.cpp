// Ranks meet in the temporary folder: a list appears there by one rename when its shard is safe, so
// that a background thread needs no collective.
#include "core/checkpoint/writer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/checkpoint/file.h"
#include "core/checkpoint/safetensors.h"

namespace assay::checkpoint {
namespace fs = std::filesystem;
namespace {

constexpr auto kPoll = std::chrono::milliseconds(5);

std::string rank_name(int64_t rank) {
  char text[32];
  std::snprintf(text, sizeof text, "rank-%05lld", static_cast<long long>(rank));
  return text;
}

fs::path list_file(const fs::path& folder, int64_t rank) {
  return folder / (rank_name(rank) + ".json");
}

/// Hashes and writes piece by piece, while the bytes are in the cache.
void write_chunk(OutputFile& out, const ShardTensor& tensor, int64_t bytes, int64_t piece_bytes,
                 Chunk& chunk) {
  for (int64_t begin = 0; begin < bytes; begin += piece_bytes) {
    const std::string_view piece(reinterpret_cast<const char*>(tensor.data) + begin,
                                 static_cast<size_t>(std::min(piece_bytes, bytes - begin)));
    chunk.sha256.push_back(sha256(piece));
    out.write(piece);
  }
}

void save_list(const fs::path& folder, int rank, const std::map<std::string, TensorEntry>& list) {
  try {
    write_file_atomically(list_file(folder, rank), to_json(list).dump());
  } catch (const Error& error) {
    throw InfrastructureError(error.what());
  }
}

void join(std::map<std::string, TensorEntry>& all, const fs::path& list) {
  for (auto& [name, tensor] : tensors_from_json(nlohmann::json::parse(read_file(list)))) {
    const auto [entry, is_new] = all.try_emplace(name, tensor);
    if (is_new) continue;
    auto& chunks = entry->second.chunks;
    chunks.insert(chunks.end(), tensor.chunks.begin(), tensor.chunks.end());
  }
}

}  // namespace

int64_t write_shard(const fs::path& folder, int rank, const std::vector<ShardTensor>& tensors) {
  std::vector<const ShardTensor*> mine;
  std::vector<std::pair<std::string, FileTensor>> places;
  for (const ShardTensor& t : tensors) {
    if (volume(t.box) == 0) continue;
    mine.push_back(&t);
    places.emplace_back(t.name, FileTensor{.dtype = t.dtype, .shape = t.box.size});
  }
  const std::string file = rank_name(rank) + ".safetensors";
  make_folder(folder);
  OutputFile out(folder / file);
  out.write(make_header(places));
  std::map<std::string, TensorEntry> list;
  int64_t written = 0;
  for (size_t i = 0; i < mine.size(); ++i) {
    const ShardTensor& t = *mine[i];
    TensorEntry entry{.kind = t.kind, .dtype = t.dtype, .shape = t.shape};
    Chunk chunk{.file = file, .offset = places[i].second.begin, .box = t.box};
    const int64_t bytes = chunk_bytes(entry, chunk);
    write_chunk(out, t, bytes, Manifest().piece_bytes, chunk);
    written += bytes;
    entry.chunks.push_back(std::move(chunk));
    list.emplace(t.name, std::move(entry));
  }
  out.sync();
  save_list(folder, rank, list);
  return written;
}

std::map<std::string, TensorEntry> join_shards(const fs::path& folder, int64_t world,
                                               double limit_s, const std::atomic<bool>& abandoned) {
  std::map<std::string, TensorEntry> all;
  const double start = monotonic_s();
  for (int64_t rank = 0; rank < world; ++rank) {
    while (!fs::exists(list_file(folder, rank))) {
      if (abandoned) throw InfrastructureError("a checkpoint was given up: the run ended");
      if (monotonic_s() - start > limit_s) {
        throw InfrastructureError("rank " + std::to_string(rank) + " wrote no part of '" +
                                  folder.string() + "' in " +
                                  std::to_string(static_cast<int64_t>(limit_s)) + " s");
      }
      std::this_thread::sleep_for(kPoll);
    }
    join(all, list_file(folder, rank));
  }
  for (int64_t rank = 0; rank < world; ++rank) fs::remove(list_file(folder, rank));
  return all;
}

}  // namespace assay::checkpoint
