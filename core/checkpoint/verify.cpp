// One chunk after the other; memory for one at a time.
#include "core/checkpoint/verify.h"

#include <algorithm>
#include <map>
#include <memory>

#include "assay/error.h"
#include "core/base/files.h"

namespace assay::checkpoint {
namespace {

Damage damage_of(const std::string& name, const Chunk& chunk, std::string what) {
  return {.file = chunk.file, .tensor = name, .chunk = print(chunk.box), .what = std::move(what)};
}

/// Gaps and overlaps of the chunks of one tensor.
std::optional<Damage> check_cover(const std::string& name, const TensorEntry& tensor) {
  int64_t covered = 0;
  for (size_t i = 0; i < tensor.chunks.size(); ++i) {
    covered += volume(tensor.chunks[i].box);
    for (size_t j = 0; j < i; ++j) {
      if (!intersect(tensor.chunks[i].box, tensor.chunks[j].box)) continue;
      return damage_of(name, tensor.chunks[i], "it overlaps " + print(tensor.chunks[j].box));
    }
  }
  const int64_t all = volume(whole(tensor.shape));
  if (covered == all) return std::nullopt;
  return Damage{.tensor = name,
                .what = "its chunks hold " + std::to_string(covered) + " of " +
                        std::to_string(all) + " elements"};
}

class Verifier {
 public:
  explicit Verifier(const std::filesystem::path& folder)
      : folder_(folder), manifest_(read_manifest(folder)) {}

  std::vector<Damage> run() {
    for (const auto& [name, tensor] : manifest_.tensors) {
      add(check_cover(name, tensor));
      for (const Chunk& chunk : tensor.chunks) add(check_chunk(name, tensor, chunk));
    }
    return std::move(found_);
  }

 private:
  void add(std::optional<Damage> damage) {
    if (damage) found_.push_back(std::move(*damage));
  }

  std::optional<Damage> check_chunk(const std::string& name, const TensorEntry& tensor,
                                    const Chunk& chunk) {
    try {
      auto& file = files_[chunk.file];
      if (!file) file = std::make_unique<InputFile>(folder_ / chunk.file);
      std::vector<std::byte> bytes(static_cast<size_t>(chunk_bytes(tensor, chunk)));
      const auto pieces = static_cast<int64_t>(chunk.sha256.size());
      return read_pieces(*file, name, tensor, chunk, manifest_.piece_bytes, {0, pieces},
                         bytes.data());
    } catch (const Error& error) {
      return damage_of(name, chunk, error.what());
    }
  }

  const std::filesystem::path folder_;
  const Manifest manifest_;
  std::map<std::string, std::unique_ptr<InputFile>> files_;
  std::vector<Damage> found_;
};

}  // namespace

std::string print(const Damage& damage) {
  std::string text = damage.file.empty() ? "" : damage.file + ": ";
  text += "'" + damage.tensor + "'";
  if (!damage.chunk.empty()) text += ", chunk " + damage.chunk;
  return text + ": " + damage.what;
}

std::optional<Damage> read_pieces(const InputFile& file, const std::string& name,
                                  const TensorEntry& tensor, const Chunk& chunk,
                                  int64_t piece_bytes, PieceRange range, std::byte* out) {
  const int64_t bytes = chunk_bytes(tensor, chunk);
  const int64_t pieces = (bytes + piece_bytes - 1) / piece_bytes;
  if (static_cast<int64_t>(chunk.sha256.size()) != pieces) {
    return damage_of(name, chunk,
                     "the manifest has " + std::to_string(chunk.sha256.size()) + " checksums for " +
                         std::to_string(pieces) + " pieces");
  }
  if (chunk.offset + static_cast<uint64_t>(bytes) > file.size()) {
    return damage_of(name, chunk,
                     "the file ends at byte " + std::to_string(file.size()) +
                         "; the chunk ends at " +
                         std::to_string(chunk.offset + static_cast<uint64_t>(bytes)));
  }
  for (int64_t piece = range.begin; piece < range.end; ++piece) {
    const int64_t begin = piece * piece_bytes;
    const auto size = static_cast<size_t>(std::min(piece_bytes, bytes - begin));
    const auto at = chunk.offset + static_cast<uint64_t>(begin);
    file.read(at, out, size);
    if (sha256({reinterpret_cast<const char*>(out), size}) !=
        chunk.sha256[static_cast<size_t>(piece)]) {
      return damage_of(name, chunk,
                       "bytes " + std::to_string(at) + " to " + std::to_string(at + size) +
                           " of the file do not match their checksum");
    }
    out += size;
  }
  return std::nullopt;
}

std::vector<Damage> find_damage(const std::filesystem::path& folder) {
  return Verifier(folder).run();
}

}  // namespace assay::checkpoint
