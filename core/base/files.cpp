// Whole files, written atomically; hashes by libcrypto and Boost.CRC; assay's folders.
#include "core/base/files.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/crc.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "assay/error.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const fs::path& file, const std::string& what, int error) {
  throw Error(file.string() + ": " + what + ": " + std::strerror(error));
}

/// Closes on scope exit.
struct Descriptor {
  explicit Descriptor(int number) : fd(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  const int fd;
};

/// Calls `take(bytes)` for each piece of the file.
template <class Take>
void read_pieces(const fs::path& file, Take take) {
  constexpr size_t kPieceBytes = size_t{1} << 18;
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (in.fd < 0) fail(file, "cannot open", errno);
  std::vector<char> piece(kPieceBytes);
  for (;;) {
    const ssize_t size = ::read(in.fd, piece.data(), piece.size());
    if (size == 0) return;
    if (size > 0) {
      take(std::string_view(piece.data(), static_cast<size_t>(size)));
    } else if (errno != EINTR) {
      fail(file, "cannot read", errno);
    }
  }
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    ASSAY_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
                "libcrypto has no SHA-256");
  }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string hex() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest, &size);
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (unsigned int i = 0; i < size; ++i)
      text += {digits[digest[i] >> 4], digits[digest[i] & 15]};
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

void write_all(int fd, std::string_view content, const fs::path& file) {
  while (!content.empty()) {
    const ssize_t size = ::write(fd, content.data(), content.size());
    if (size >= 0) {
      content.remove_prefix(static_cast<size_t>(size));
    } else if (errno != EINTR) {
      fail(file, "cannot write", errno);
    }
  }
}

void sync_folder(const fs::path& folder) {
  const Descriptor handle(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.fd < 0 || ::fsync(handle.fd) != 0) fail(folder, "cannot sync", errno);
}

/// Permission bits of an ordinary new file: 0666 without the process's mask.
mode_t new_file_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

fs::path cache_location() {
  if (const std::string own = from_environment("ASSAY_CACHE_DIR"); !own.empty()) return own;
  if (const std::string xdg = from_environment("XDG_CACHE_HOME"); !xdg.empty()) {
    return fs::path(xdg) / "assay";
  }
  if (const std::string home = from_environment("HOME"); !home.empty()) {
    return fs::path(home) / ".cache" / "assay";
  }
  throw Error("no folder for assay's cache: HOME is not set",
              "set ASSAY_CACHE_DIR to a folder that may be written");
}

}  // namespace

std::string read_file(const fs::path& file) {
  std::string content;
  read_pieces(file, [&](std::string_view piece) { content += piece; });
  return content;
}

void write_file_atomically(const fs::path& file, std::string_view content) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::string temporary = (folder / ("." + file.filename().string() + ".XXXXXX")).string();
  {
    const Descriptor out(::mkostemp(temporary.data(), O_CLOEXEC));
    if (out.fd < 0) fail(file, "cannot create", errno);
    try {
      write_all(out.fd, content, file);
      if (::fchmod(out.fd, new_file_mode()) != 0 || ::fsync(out.fd) != 0) {
        fail(file, "cannot write", errno);
      }
      if (::rename(temporary.c_str(), file.c_str()) != 0) fail(file, "cannot replace", errno);
    } catch (...) {
      ::unlink(temporary.c_str());
      throw;
    }
  }
  sync_folder(folder);
}

std::string sha256(std::string_view content) {
  Sha256 hash;
  hash.add(content);
  return hash.hex();
}

std::string sha256_file(const fs::path& file) {
  Sha256 hash;
  read_pieces(file, [&](std::string_view piece) { hash.add(piece); });
  return hash.hex();
}

uint32_t crc32c(std::string_view content) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(content.data(), content.size());
  return crc.checksum();
}

std::string crc32c_hex(std::string_view content) {
  std::string text(8, '0');
  for (uint32_t rest = crc32c(content), i = 8; rest != 0; rest >>= 4) {
    text[--i] = "0123456789abcdef"[rest & 0xF];
  }
  return text;
}

fs::path cache_dir() {
  const fs::path folder = cache_location();
  std::error_code error;
  const bool made = fs::create_directories(folder, error);
  if (error) throw Error(folder.string() + ": cannot create assay's cache: " + error.message());
  if (made) fs::permissions(folder, fs::perms::owner_all);
  return folder;
}

fs::path executable_dir() { return fs::read_symlink("/proc/self/exe").parent_path(); }

}  // namespace assay
