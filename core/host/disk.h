// Disk space: the check before a start, and the ballast that is given up when the disk is full.
#pragma once

#include <cstdint>
#include <filesystem>

namespace assay::host {

constexpr int64_t kMinimumFreeBytes = int64_t{256} << 20;
constexpr int64_t kBallastBytes = int64_t{16} << 20;

int64_t free_bytes(const std::filesystem::path& folder);

/// Throws DiagnosticError H03 when `folder` has less than 256 MiB + `estimate`. `free` is what is
/// free there.
void require_space(const std::filesystem::path& folder, int64_t free, int64_t estimate);

/// A file of 16 MiB that holds room for the last writes of a full disk. Deleted at the end.
class Ballast {
 public:
  explicit Ballast(const std::filesystem::path& folder);
  ~Ballast();
  Ballast(const Ballast&) = delete;
  Ballast& operator=(const Ballast&) = delete;
  void drop();

 private:
  const std::filesystem::path file_;
};

}  // namespace assay::host
