// DeviceLock: one timed run at a time on a device set, across supervisors of one user.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/unique_fd.h"

namespace assay::host {

/// $XDG_RUNTIME_DIR/assay, else /tmp/assay-<uid>; mode 0700.
std::filesystem::path runtime_dir();

/// A flock on `<folder>/<device set>.lock`: exclusive for a timed run, shared for untimed ones.
/// The kernel lets go of it when the supervisor dies.
class DeviceLock {
 public:
  enum class Mode { shared, exclusive };
  DeviceLock(const std::filesystem::path& folder, const std::string& device_set);

  bool try_acquire(Mode mode);  ///< never waits
  void acquire();               ///< exclusive, waits
  void release();
  std::string holder() const;  ///< "pid 123" of the last exclusive owner, for messages

 private:
  UniqueFd file_;
};

}  // namespace assay::host
