// One function per topic, each a reading of /proc, /sys or the file system.
#include "core/host/doctor.h"

#include <sys/vfs.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "core/base/units.h"
#include "core/host/device_lock.h"
#include "core/host/disk.h"
#include "core/host/machine.h"

namespace assay::host {
namespace {

constexpr double kBusyPressurePercent = 20;  // the pair filter's threshold
constexpr double kStealPercent = 2;
constexpr int64_t kLittleMemoryBytes = int64_t{2} << 30;

std::string read_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string one_decimal(double value) {
  const int64_t tenths = std::lround(10 * value);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

Finding check_worker(const DoctorPaths& paths) {
  if (std::filesystem::exists(paths.worker)) {
    return {"worker", Health::good, paths.worker.string()};
  }
  return {"worker", Health::problem, "there is no '" + paths.worker.string() + "'",
          "build it: cmake --build build --target assay-worker"};
}

std::filesystem::path existing_parent(std::filesystem::path path) {
  path = std::filesystem::absolute(path);
  while (!std::filesystem::exists(path) && path.has_relative_path()) path = path.parent_path();
  return path;
}

Finding check_disk(const DoctorPaths& paths) {
  const auto folder = existing_parent(paths.results);
  const int64_t free = free_bytes(folder);
  const std::string text = print_bytes(free) + " free in " + folder.string();
  if (free >= kMinimumFreeBytes) return {"disk", Health::good, text};
  return {"disk", Health::problem, text + ", runs need " + print_bytes(kMinimumFreeBytes),
          "free some space, or put the results elsewhere with --db FILE"};
}

Finding check_file_system(const DoctorPaths& paths) {
  struct Remote {
    int64_t magic;
    const char* name;
  };
  constexpr std::array<Remote, 5> kRemote = {{{0x6969, "NFS"},
                                              {0x517B, "SMB"},
                                              {0xFF534D42, "CIFS"},
                                              {0x0BD00BD0, "Lustre"},
                                              {0x65735546, "FUSE"}}};
  struct statfs info {};
  const auto folder = existing_parent(paths.results);
  if (statfs(folder.c_str(), &info) != 0) {
    return {"file system", Health::problem, "cannot look at " + folder.string()};
  }
  for (const Remote& remote : kRemote) {
    if (static_cast<uint32_t>(info.f_type) != static_cast<uint32_t>(remote.magic)) continue;
    return {"file system", Health::problem,
            folder.string() + " is on " + remote.name + ": the database needs shared memory",
            "put the database on a local disk with --db FILE; spools may stay"};
  }
  return {"file system", Health::good, "local"};
}

Finding check_cores(const DoctorPaths&) {
  const size_t cores = physical_cores().size();
  return {"devices", Health::good,
          std::to_string(cores) + (cores == 1 ? " physical core" : " physical cores")};
}

Finding check_memory(const DoctorPaths&) {
  const int64_t bytes = usable_memory_bytes();
  if (bytes >= kLittleMemoryBytes) return {"memory", Health::good, print_bytes(bytes) + " usable"};
  return {"memory", Health::warning, "only " + print_bytes(bytes) + " usable",
          "set run.memory_limit, or raise the control group's limit"};
}

Finding check_governor(const DoctorPaths& paths) {
  const std::string governor =
      read_line(paths.system / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (governor.empty()) {
    return {"clock policy", Health::good, "not exposed (a virtual machine)"};
  }
  if (governor == "performance") return {"clock policy", Health::good, governor};
  return {"clock policy", Health::warning, governor + ": the clock follows the load",
          "cpupower frequency-set -g performance"};
}

Finding check_turbo(const DoctorPaths& paths) {
  const auto cpu = paths.system / "sys/devices/system/cpu";
  const std::string boost = read_line(cpu / "cpufreq/boost");
  const std::string no_turbo = read_line(cpu / "intel_pstate/no_turbo");
  if (boost.empty() && no_turbo.empty()) return {"turbo", Health::good, "not exposed"};
  if (boost == "0" || no_turbo == "1") return {"turbo", Health::good, "off"};
  return {"turbo", Health::warning, "on: the clock depends on temperature",
          "fine for paired runs; for single ones switch it off"};
}

Finding check_pressure(const DoctorPaths& paths) {
  const std::string line = read_line(paths.system / "proc/pressure/cpu");
  const size_t at = line.find("avg60=");
  if (at == std::string::npos) return {"cpu pressure", Health::good, "not exposed"};
  const double percent = std::strtod(line.c_str() + at + 6, nullptr);
  const std::string text = one_decimal(percent);
  if (percent <= kBusyPressurePercent) {
    return {"cpu pressure", Health::good, text + " % of the last minute"};
  }
  return {"cpu pressure", Health::warning, text + " % of the last minute: others use the cores",
          "stop what else runs here before timed studies"};
}

Finding check_steal(const DoctorPaths& paths) {
  std::ifstream stream(paths.system / "proc/stat");
  std::string name;
  std::array<double, 8> ticks{};  // user nice system idle iowait irq softirq steal
  stream >> name;
  double total = 0;
  for (double& tick : ticks) {
    stream >> tick;
    total += tick;
  }
  const double percent = total > 0 ? 100 * ticks[7] / total : 0;
  const std::string text = one_decimal(percent) + " % of CPU time since boot";
  if (percent <= kStealPercent) return {"steal", Health::good, text};
  return {"steal", Health::warning, text + ": the host is shared",
          "use paired runs (assay compare); single timings are doubtful here"};
}

Finding check_device_lock(const DoctorPaths&) {
  DeviceLock lock(runtime_dir(), "cpu");
  if (lock.try_acquire(DeviceLock::Mode::exclusive)) {
    lock.release();
    return {"device lock", Health::good, "free"};
  }
  return {"device lock", Health::warning, "held by " + lock.holder(),
          "timed runs wait until it is done"};
}

}  // namespace

std::vector<Finding> examine(const DoctorPaths& paths) {
  std::vector<Finding> findings;
  for (const auto check :
       {check_worker, check_disk, check_file_system, check_cores, check_memory, check_governor,
        check_turbo, check_pressure, check_steal, check_device_lock}) {
    findings.push_back(check(paths));
  }
  return findings;
}

}  // namespace assay::host
