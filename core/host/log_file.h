// LogFile: what a rank prints, bounded: the first 4 MiB and the last 12 MiB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/unique_fd.h"

namespace assay::host {

struct LogLimits {
  int64_t head_bytes = int64_t{4} << 20;
  int64_t tail_bytes = int64_t{12} << 20;
};

/// Bytes go to the file at once. Behind the head the file is a ring until finish() puts the tail in
/// order, below a line that tells how much was dropped.
class LogFile {
 public:
  explicit LogFile(const std::filesystem::path& file, LogLimits limits = {});

  void append(std::string_view bytes);  ///< throws InfrastructureError (a full disk)
  void finish();                        ///< once, when nothing follows

  int64_t total_bytes() const { return total_; }  ///< printed, not kept
  const std::filesystem::path& path() const { return path_; }

 private:
  void write_at(std::string_view bytes, int64_t position);

  const std::filesystem::path path_;
  const LogLimits limits_;
  UniqueFd file_;
  int64_t total_ = 0;
};

}  // namespace assay::host
