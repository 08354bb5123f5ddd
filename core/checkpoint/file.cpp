// Thin calls of POSIX, with the name of the file in every error.
#include "core/checkpoint/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "assay/error.h"

namespace assay::checkpoint {
namespace {

std::string failure(const std::filesystem::path& file, const char* what) {
  return file.string() + ": " + what + ": " + std::strerror(errno);
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& file)
    : path_(file), fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat facts {};
  if (!fd_ || ::fstat(fd_.get(), &facts) != 0) throw Error(failure(path_, "cannot open"));
  size_ = static_cast<uint64_t>(facts.st_size);
}

void InputFile::read(uint64_t offset, std::byte* to, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t size = ::pread(fd_.get(), to, bytes, static_cast<off_t>(offset));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw Error(failure(path_, "cannot read"));
    if (size == 0) throw Error(path_.string() + ": it became shorter while it was read");
    offset += static_cast<uint64_t>(size);
    to += size;
    bytes -= static_cast<size_t>(size);
  }
}

OutputFile::OutputFile(const std::filesystem::path& file)
    : path_(file), fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (!fd_) throw InfrastructureError(failure(path_, "cannot create"));
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::write(fd_.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw InfrastructureError(failure(path_, "cannot write"));
    bytes.remove_prefix(static_cast<size_t>(size));
  }
}

void OutputFile::sync() {
  if (::fsync(fd_.get()) != 0) throw InfrastructureError(failure(path_, "cannot sync"));
}

void write_synced(const std::filesystem::path& file, std::string_view content) {
  OutputFile out(file);
  out.write(content);
  out.sync();
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return;
  throw InfrastructureError(folder.string() + ": cannot create: " + error.message());
}

void sync_folder(const std::filesystem::path& folder) {
  const UniqueFd handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle || ::fsync(handle.get()) != 0) {
    throw InfrastructureError(failure(folder, "cannot sync"));
  }
}

}  // namespace assay::checkpoint
