// MappedFile: a file's bytes in memory without reading them; FileLock: one builder of a cache.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace assay::data {

/// Read only. Throws Error naming the file and the reason. An empty file is an empty view.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& file);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {static_cast<const char*>(address_), size_}; }

 private:
  void* address_ = nullptr;
  size_t size_ = 0;
};

/// Exclusive between processes for its lifetime; waits. The kernel frees it if its owner dies.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& file);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  int descriptor_;
};

}  // namespace assay::data
