// SharedMemory: anonymous pages that other processes can map. They have no name in any file system,
// so nothing is left behind, whatever kills their owner.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace assay::comm {

/// A mapping of memfd pages. Peers find them as /proc/PID/fd/FD while the owner lives; once mapped
/// they stay valid after its death.
class SharedMemory {
 public:
  SharedMemory() = default;
  /// Zeroed pages, sparse until touched. Throws InfrastructureError.
  static SharedMemory create(const char* label, size_t bytes);
  /// Pages of another process; throws InfrastructureError if it is gone.
  static SharedMemory attach(pid_t pid, int fd, size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  int fd() const { return fd_; }  ///< -1 when attached

 private:
  void release();

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  int fd_ = -1;
};

}  // namespace assay::comm
