// Pieces from the first to the last needed byte of a chunk are read and checked; rows are copied
// out.
#include "core/checkpoint/reader.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/verify.h"

namespace assay::checkpoint {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& folder, const Damage& damage) {
  throw Error("[R-CKPT] " + folder.string() + " is damaged: " + print(damage),
              "take an earlier checkpoint; `assay checkpoint show` lists every damaged chunk");
}

}  // namespace

Reader::Reader(const std::filesystem::path& folder)
    : folder_(folder), manifest_(read_manifest(folder)) {}

const InputFile& Reader::file(const std::string& name) {
  auto& file = files_[name];
  if (!file) file = std::make_unique<InputFile>(folder_ / name);
  return *file;
}

void Reader::read(const std::string& name, const Region& box, std::byte* out) {
  const auto found = manifest_.tensors.find(name);
  if (found == manifest_.tensors.end()) {
    throw Error("[R-CKPT] " + folder_.string() + " has no tensor '" + name + "'");
  }
  const TensorEntry& tensor = found->second;
  ASSAY_CHECK(contains(tensor.shape, box), "a box outside of '" + name + "' is read");
  int64_t covered = 0;
  for (const Chunk& chunk : tensor.chunks) {
    const auto part = intersect(chunk.box, box);
    if (!part) continue;
    copy(name, tensor, chunk, *part, box, out);
    covered += volume(*part);
  }
  if (covered != volume(box)) {
    refuse(folder_, {.tensor = name,
                     .what = "its chunks hold " + std::to_string(covered) + " of the " +
                             std::to_string(volume(box)) + " elements of " + print(box)});
  }
}

void Reader::copy(const std::string& name, const TensorEntry& tensor, const Chunk& chunk,
                  const Region& part, const Region& box, std::byte* out) {
  const auto width = static_cast<int64_t>(element_bytes(tensor.dtype));
  Shape last = part.begin;
  for (size_t d = 0; d < last.size(); ++d) last[d] += part.size[d] - 1;
  const int64_t piece = manifest_.piece_bytes;
  const int64_t first_piece = index_in(chunk.box, part.begin) * width / piece;
  const int64_t end_piece = (index_in(chunk.box, last) * width + width - 1) / piece + 1;
  const int64_t begin = first_piece * piece;
  const int64_t end = std::min(end_piece * piece, chunk_bytes(tensor, chunk));
  std::vector<std::byte> bytes(static_cast<size_t>(end - begin));
  if (const auto damage = read_pieces(file(chunk.file), name, tensor, chunk, piece,
                                      {first_piece, end_piece}, bytes.data())) {
    refuse(folder_, *damage);
  }
  bytes_read_ += end - begin;
  for_each_run(part, chunk.box, box, [&](int64_t from, int64_t to, int64_t count) {
    std::memcpy(out + to * width, bytes.data() + (from * width - begin),
                static_cast<size_t>(count * width));
  });
}

}  // namespace assay::checkpoint
