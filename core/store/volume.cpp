// File system types by their magic numbers, linux/magic.h and statfs(2).
#include "core/store/volume.h"

#include <sys/vfs.h>

#include <algorithm>
#include <utility>

#include "assay/error.h"

namespace assay::store {
namespace {

constexpr std::pair<unsigned long, const char*> kNetwork[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},        {0xFF534D42, "SMB"}, {0xFE534D42, "SMB"},
    {0x0BD00BD0, "Lustre"}, {0x65735546, "FUSE"},   {0x01021997, "9p"},  {0x00C36400, "Ceph"},
    {0x47504653, "GPFS"},   {0x19830326, "BeeGFS"}, {0x5346414F, "AFS"}, {0x6B414653, "AFS"},
    {0x013111A8, "IBRIX"},  {0xAAD7AAEA, "PanFS"},
};

}  // namespace

std::optional<std::string> network_file_system(unsigned long type) {
  const auto* found = std::find_if(std::begin(kNetwork), std::end(kNetwork),
                                   [&](const auto& entry) { return entry.first == type; });
  if (found == std::end(kNetwork)) return std::nullopt;
  return found->second;
}

void require_local(const std::filesystem::path& file) {
  std::filesystem::path existing = std::filesystem::absolute(file);
  std::error_code ignored;
  while (!std::filesystem::exists(existing, ignored) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  struct statfs info {};
  if (statfs(existing.c_str(), &info) != 0) return;  // opening it will tell more
  const auto name = network_file_system(static_cast<unsigned int>(info.f_type));
  if (!name) return;
  throw Error("the results database '" + file.string() + "' is on a network file system (" + *name +
                  "), where SQLite's write-ahead log is not safe",
              "use a local folder: --db /path/on/a/local/disk/assay.db");
}

}  // namespace assay::store
