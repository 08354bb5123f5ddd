// Free space by statvfs; ballast by posix_fallocate.
#include "core/host/disk.h"

#include <fcntl.h>

#include <cstring>

#include "assay/error.h"
#include "core/base/diagnostic.h"
#include "core/base/unique_fd.h"
#include "core/base/units.h"

namespace assay::host {

int64_t free_bytes(const std::filesystem::path& folder) {
  return static_cast<int64_t>(std::filesystem::space(folder).available);
}

void require_space(const std::filesystem::path& folder, int64_t free, int64_t estimate) {
  const int64_t needed = kMinimumFreeBytes + estimate;
  if (free >= needed) return;
  throw DiagnosticError(
      Diagnostic{.id = "H03",
                 .place = folder.string(),
                 .text = "the disk is nearly full: " + print_bytes(free) + " free, " +
                         print_bytes(needed) + " needed to start",
                 .hints = {"free some space, or put the results elsewhere with --db FILE"}});
}

Ballast::Ballast(const std::filesystem::path& folder) : file_(folder / ".ballast") {
  const UniqueFd fd(open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const int error = fd ? posix_fallocate(fd.get(), 0, kBallastBytes) : errno;
  if (error == 0) return;
  drop();
  throw InfrastructureError("cannot set aside " + print_bytes(kBallastBytes) + " in '" +
                                file_.string() + "': " + std::strerror(error),
                            "free some space, then run: assay resume");
}

Ballast::~Ballast() { drop(); }

void Ballast::drop() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

}  // namespace assay::host
