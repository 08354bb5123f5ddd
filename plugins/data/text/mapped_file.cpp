// mmap and flock with assay's error texts.
#include "mapped_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "assay/error.h"

namespace assay::data {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
  throw Error(file.string() + ": " + what + ": " + std::strerror(errno));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(file, "cannot open");
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  size_ = static_cast<size_t>(status.st_size);
  if (known && size_ > 0) {
    address_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
  }
  ::close(descriptor);
  if (!known || address_ == MAP_FAILED) fail(file, "cannot map");
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (address_ != nullptr) ::munmap(address_, size_);
}

FileLock::FileLock(const std::filesystem::path& file)
    : descriptor_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  if (descriptor_ < 0) fail(file, "cannot open the lock");
  while (::flock(descriptor_, LOCK_EX) != 0) {
    if (errno != EINTR) fail(file, "cannot lock");
  }
}

FileLock::~FileLock() { ::close(descriptor_); }

}  // namespace assay::data
