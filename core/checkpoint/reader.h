// The reading half: any box of any tensor, whatever boxes it was stored in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "core/checkpoint/file.h"
#include "core/checkpoint/manifest.h"

namespace assay::checkpoint {

/// One checkpoint. Keeps its files open; one thread.
class Reader {
 public:
  /// Reads the manifest. Throws Error.
  explicit Reader(const std::filesystem::path& folder);

  const Manifest& manifest() const { return manifest_; }
  const std::filesystem::path& folder() const { return folder_; }

  /// Fills `out` (row-major, as large as `box`) from the chunks that hold parts of it, and checks
  /// every piece it reads. Throws Error naming file, tensor and chunk of what is damaged, and the
  /// tensor where chunks do not cover the box.
  void read(const std::string& name, const Region& box, std::byte* out);

  int64_t bytes_read() const { return bytes_read_; }  ///< whole pieces

 private:
  void copy(const std::string& name, const TensorEntry& tensor, const Chunk& chunk,
            const Region& part, const Region& box, std::byte* out);
  const InputFile& file(const std::string& name);

  std::filesystem::path folder_;
  Manifest manifest_;
  std::map<std::string, std::unique_ptr<InputFile>> files_;
  int64_t bytes_read_ = 0;
};

}  // namespace assay::checkpoint
