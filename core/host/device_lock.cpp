// flock with the owner's pid written into the file.
#include "core/host/device_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "assay/error.h"

namespace assay::host {

std::filesystem::path runtime_dir() {
  const char* base = std::getenv("XDG_RUNTIME_DIR");
  const std::filesystem::path dir =
      base != nullptr && *base != '\0'
          ? std::filesystem::path(base) / "assay"
          : std::filesystem::temp_directory_path() / ("assay-" + std::to_string(geteuid()));
  std::filesystem::create_directories(dir);
  std::filesystem::permissions(dir, std::filesystem::perms::owner_all);
  return dir;
}

DeviceLock::DeviceLock(const std::filesystem::path& folder, const std::string& device_set) {
  const auto file = folder / (device_set + ".lock");
  file_.reset(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file_) {
    throw InfrastructureError("cannot open the device lock '" + file.string() +
                              "': " + std::strerror(errno));
  }
}

bool DeviceLock::try_acquire(Mode mode) {
  if (flock(file_.get(), (mode == Mode::exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    return false;
  }
  if (mode == Mode::exclusive) {
    const std::string pid = std::to_string(getpid());
    if (ftruncate(file_.get(), 0) != 0 ||
        pwrite(file_.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
      return true;  // the pid is only for messages
    }
  }
  return true;
}

void DeviceLock::acquire() {
  while (flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

void DeviceLock::release() { flock(file_.get(), LOCK_UN); }

std::string DeviceLock::holder() const {
  char text[16] = {};
  const ssize_t n = pread(file_.get(), text, sizeof text - 1, 0);
  return n > 0 ? "pid " + std::string(text, static_cast<size_t>(n)) : "another process";
}

}  // namespace assay::host
