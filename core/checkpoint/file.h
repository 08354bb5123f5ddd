// File: reading at offsets and writing through to the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "core/base/unique_fd.h"

namespace assay::checkpoint {

class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& file);  ///< throws Error
  uint64_t size() const { return size_; }
  /// Throws Error for a failed read; the range must lie in the file.
  void read(uint64_t offset, std::byte* to, size_t bytes) const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  uint64_t size_ = 0;
};

/// A new file. Errors are the machine's: InfrastructureError naming the file and the reason.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& file);
  void write(std::string_view bytes);
  void sync();  ///< the data is on the disk when this returns

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
};

/// Writes a whole new file through to the disk. Throws InfrastructureError.
void write_synced(const std::filesystem::path& file, std::string_view content);

/// Makes the folder and its parents where they are missing. Throws InfrastructureError.
void make_folder(const std::filesystem::path& folder);

/// Names made, changed and removed in `folder` are on the disk. Throws InfrastructureError.
void sync_folder(const std::filesystem::path& folder);

}  // namespace assay::checkpoint
