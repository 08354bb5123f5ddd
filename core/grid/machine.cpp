// This machine and the installed binaries, as plans see them.
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/grid/plan.h"
#include "core/plugin/note.h"

namespace assay::grid {
namespace {

namespace fs = std::filesystem;

/// Physical cores behind the logical ones that this process may use.
int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream siblings("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                           "/topology/thread_siblings_list");
    std::string name;
    std::getline(siblings, name);
    cores.insert(name.empty() ? "cpu" + std::to_string(cpu) : name);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

/// What identifies a state of a file without reading it.
std::string stamp_of(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) {
    throw Error(file.string() + ": cannot be read: " + std::strerror(errno));
  }
  return std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino) + ":" +
         std::to_string(info.st_size) + ":" + std::to_string(info.st_mtim.tv_sec) + "." +
         std::to_string(info.st_mtim.tv_nsec);
}

std::string folder_hash(const fs::path& folder) {
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.insert(entry.path());
  }
  std::string all;
  for (const fs::path& file : files) {
    all += fs::relative(file, folder).string() + "\n" + cached_file_hash(file) + "\n";
  }
  return sha256(all);
}

}  // namespace

Machine this_machine() {
  Machine machine{.devices = usable_cores(),
                  .properties = {"device.cpu", "dtype.bf16", "dtype.float8_e4m3"}};
  if (__builtin_cpu_supports("avx2")) machine.properties.insert("cpu.avx2");
  if (__builtin_cpu_supports("avx512f")) machine.properties.insert("cpu.avx512");
  return machine;
}

std::string cached_file_hash(const fs::path& file) {
  if (fs::is_directory(file)) return folder_hash(file);
  const std::string stamp = stamp_of(file);
  const fs::path cache = cache_dir() / "hashes" / sha256(fs::absolute(file).string());
  try {
    const std::string known = read_file(cache);
    if (known.starts_with(stamp + " ")) return known.substr(stamp.size() + 1);
  } catch (const Error&) {
    // Not hashed before.
  }
  const std::string hash = sha256_file(file);
  fs::create_directories(cache.parent_path());
  if (stamp_of(file) == stamp) write_file_atomically(cache, stamp + " " + hash);
  return hash;
}

Binaries installed_binaries() {
  const fs::path bin = executable_dir();
  const auto hash = [](const fs::path& file) {
    return fs::exists(file) ? cached_file_hash(file) : std::string();
  };
  fs::path library = bin.parent_path() / "lib" / "libassay.so";
  return {.libassay = hash(library),
          .libtorch = host_note().torch,
          .worker = hash(bin / "assay-worker")};
}

}  // namespace assay::grid
