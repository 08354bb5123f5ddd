// The head is appended, the tail is a ring behind it.
#include "core/host/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "assay/error.h"

namespace assay::host {

LogFile::LogFile(const std::filesystem::path& file, LogLimits limits)
    : path_(file), limits_(limits) {
  file_.reset(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file_) {
    throw InfrastructureError("cannot create the log '" + path_.string() +
                              "': " + std::strerror(errno));
  }
}

void LogFile::write_at(std::string_view bytes, int64_t position) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(file_.get(), bytes.data(), bytes.size(), position);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      throw InfrastructureError("cannot write the log '" + path_.string() +
                                "': " + std::strerror(errno));
    }
    bytes.remove_prefix(static_cast<size_t>(n));
    position += n;
  }
}

void LogFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const bool in_head = total_ < limits_.head_bytes;
    const int64_t ring = (total_ - limits_.head_bytes) % limits_.tail_bytes;
    const int64_t room = in_head ? limits_.head_bytes - total_ : limits_.tail_bytes - ring;
    const auto part = bytes.substr(0, static_cast<size_t>(room));
    write_at(part, in_head ? total_ : limits_.head_bytes + ring);
    total_ += static_cast<int64_t>(part.size());
    bytes.remove_prefix(part.size());
  }
}

void LogFile::finish() {
  const int64_t behind_head = total_ - limits_.head_bytes;
  const int64_t dropped = behind_head - limits_.tail_bytes;
  if (dropped <= 0) return;
  std::string ring(static_cast<size_t>(limits_.tail_bytes), '\0');
  const ssize_t n = pread(file_.get(), ring.data(), ring.size(), limits_.head_bytes);
  if (n < 0) return;  // left as a ring: nothing is lost
  std::rotate(ring.begin(), ring.begin() + behind_head % limits_.tail_bytes, ring.end());
  write_at("\n[assay: " + std::to_string(dropped) + " bytes dropped here]\n" + ring,
           limits_.head_bytes);
}

}  // namespace assay::host
