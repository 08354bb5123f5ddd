// Manifest: what a checkpoint holds: where in a run it was taken, and for every tensor its global
// shape, dtype and the boxes that shard files hold of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/checkpoint/region.h"

namespace assay::checkpoint {

inline constexpr const char* kManifestName = "manifest.json";

/// One box of one tensor in one file, row-major.
struct Chunk {
  std::string file{};   ///< in the checkpoint's folder
  uint64_t offset = 0;  ///< of its first byte in the file
  Region box{};
  std::vector<std::string>
      sha256{};  ///< of each piece of Manifest::piece_bytes; the last is shorter
};

enum class TensorKind {
  weight,     ///< a parameter, as the optimizer updates it (its master where there is one)
  optimizer,  ///< a slot of optimizer state: "optim/<slot>/<parameter>"
  kept,       ///< what a component keeps between steps, under the name it chose
};

const char* name_of(TensorKind kind);

struct TensorEntry {
  TensorKind kind = TensorKind::weight;
  std::string dtype{};          ///< as safetensors spells it
  Shape shape{};                ///< global
  std::vector<Chunk> chunks{};  ///< disjoint; together the whole tensor
};

/// Where the data of a run stands. A run goes on only with the same order of samples.
struct DataCursor {
  std::string fingerprint{};  ///< of the data source
  int64_t next_sample = 0;    ///< sequences consumed
  int64_t global_batch = 0;   ///< sequences per step
  int64_t seq_len = 0;
};

struct Manifest {
  int64_t step = 0;  ///< optimizer updates done; the number of the step to come, from 0
  uint64_t seed = 0;
  int64_t world = 1;  ///< ranks that wrote it
  DataCursor data{};
  nlohmann::json config{};  ///< of the run, resolved
  int64_t piece_bytes = 1 << 20;
  std::map<std::string, TensorEntry> tensors{};

  std::string config_sha256() const;
  int64_t bytes() const;  ///< of all tensors
};

/// Bytes of one chunk.
int64_t chunk_bytes(const TensorEntry& tensor, const Chunk& chunk);

nlohmann::json to_json(const std::map<std::string, TensorEntry>& tensors);
/// Throws nlohmann::json::exception, and Error for boxes outside of their tensor.
std::map<std::string, TensorEntry> tensors_from_json(const nlohmann::json& json);

/// The document, with its own checksum in it.
std::string print(const Manifest& manifest);

/// Of a checkpoint's folder. Throws Error: no such file, not JSON, another format version, or not
/// what its own checksum says.
Manifest read_manifest(const std::filesystem::path& folder);

}  // namespace assay::checkpoint
