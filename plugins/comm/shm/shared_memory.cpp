// memfd pages, mapped here and through /proc in the peers.
#include "shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "assay/error.h"

namespace assay::comm {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw InfrastructureError("comm/shm: " + what + ": " + std::strerror(errno));
}

std::byte* map(int fd, size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) fail("cannot map " + std::to_string(bytes) + " shared bytes");
  return static_cast<std::byte*>(data);
}

}  // namespace

SharedMemory SharedMemory::create(const char* label, size_t bytes) {
  SharedMemory memory;
  memory.fd_ = memfd_create(label, MFD_CLOEXEC);
  if (memory.fd_ < 0) fail("memfd_create");
  if (ftruncate(memory.fd_, static_cast<off_t>(bytes)) != 0) fail("ftruncate");
  memory.bytes_ = bytes;
  memory.data_ = map(memory.fd_, bytes);
  return memory;
}

SharedMemory SharedMemory::attach(pid_t pid, int fd, size_t bytes) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  const int own = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) fail("cannot open the shared memory of process " + std::to_string(pid));
  SharedMemory memory;
  memory.fd_ = own;  // closed on every way out
  memory.data_ = map(own, bytes);
  memory.bytes_ = bytes;
  close(std::exchange(memory.fd_, -1));
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  release();
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

SharedMemory::~SharedMemory() { release(); }

void SharedMemory::release() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (fd_ >= 0) close(fd_);
  data_ = nullptr;
  fd_ = -1;
}

}  // namespace assay::comm
