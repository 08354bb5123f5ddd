// Checking a checkpoint against its manifest: every byte, and that boxes make whole tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/file.h"
#include "core/checkpoint/manifest.h"

namespace assay::checkpoint {

struct Damage {
  std::string file{};  ///< empty: no file is to blame
  std::string tensor{};
  std::string chunk{};  ///< its box, printed; empty: the whole tensor
  std::string what{};
};

/// "rank-00000.safetensors: 'lm_head.weight', chunk [0:19, 0:32]: bytes 0 to 4864 are not what ..."
std::string print(const Damage& damage);

struct PieceRange {
  int64_t begin = 0, end = 0;  ///< half-open, in pieces of the chunk
};

/// Reads pieces of a chunk into `out`; the first that is missing or does not match its checksum is
/// the answer.
std::optional<Damage> read_pieces(const InputFile& file, const std::string& name,
                                  const TensorEntry& tensor, const Chunk& chunk,
                                  int64_t piece_bytes, PieceRange range, std::byte* out);

/// Everything that is wrong with a checkpoint's files, one entry per chunk. Throws Error if the
/// manifest cannot be read.
std::vector<Damage> find_damage(const std::filesystem::path& folder);

}  // namespace assay::checkpoint
