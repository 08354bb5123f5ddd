// Machine facts from /proc, /sys and the control group.
#include "core/host/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/base/files.h"
#include "core/base/units.h"

namespace assay::host {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kGiB = kKiB * kKiB * kKiB;
constexpr int64_t kNoLimitBytes = int64_t{1} << 60;  // version 1 prints a number near 2^63

std::string first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

/// The value behind "key" in a file of "key: value" or "key value" lines.
std::string field(const std::filesystem::path& file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t start = line.find_first_not_of(" \t:", key.size());
    if (start == key.size() || start == std::string::npos) continue;  // a longer key
    return line.substr(start);
  }
  return {};
}

int64_t leading_integer(const std::string& text, int64_t otherwise) {
  return parse_integer(text.substr(0, text.find(' '))).value_or(otherwise);
}

/// This process's folder in the memory controller, version 1 or 2; empty if there is none.
std::filesystem::path memory_group() {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::ifstream groups("/proc/self/cgroup");
  std::filesystem::path unified;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    const std::string path = line.substr(second + 1);
    if (line.substr(first, second - first) == ":memory") return root / "memory" / path.substr(1);
    if (line.rfind("0::", 0) == 0) unified = root / path.substr(1);
  }
  return unified;
}

std::string machine_id(const store::Env& env) {
  const nlohmann::json facts = {{"cpu_count", env.cpu_count.value_or(0)},
                                {"cpu_model", env.cpu_model.value_or("")},
                                {"clock_policy", env.clock_policy.value_or("")},
                                {"device_count", env.device_count.value_or(0)},
                                {"device_model", env.device_model.value_or("")},
                                {"driver", env.driver.value_or("")},
                                {"libtorch", env.libtorch.value_or("")},
                                {"ram_gib", (env.ram_bytes.value_or(0) + kGiB / 2) / kGiB}};
  return sha256(facts.dump());
}

std::string environment_id(const store::Env& env) {
  return sha256(nlohmann::json{
      {"machine_id", env.machine_id},
      {"host", env.host},
      {"compiler", env.compiler.value_or("")},
      {"build_type", env.build_type.value_or("")},
      {"sanitizer", env.sanitizer.value_or("")},
      {"facts",
       env.facts}}.dump());
}

std::string build_type() {
#ifdef NDEBUG
  return "Release";
#else
  return "Debug";
#endif
}

store::Text sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return "address";
#elif defined(__SANITIZE_THREAD__)
  return "thread";
#else
  return std::nullopt;
#endif
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& list) {
  std::vector<int> cpus;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    const size_t dash = range.find('-');
    const auto first = parse_integer(range.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_integer(range.substr(dash + 1));
    if (!first || !last) continue;
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::vector<int> physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cores;
  std::set<int> taken;  // siblings of a core that is in the list already
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || taken.contains(cpu)) continue;
    cores.push_back(cpu);
    const auto siblings = parse_cpu_list(first_line(
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list"));
    taken.insert(siblings.begin(), siblings.end());
  }
  return cores;
}

int64_t usable_memory_bytes() {
  const int64_t machine = leading_integer(field("/proc/meminfo", "MemTotal"), 0) * kKiB;
  const auto group = memory_group();
  int64_t limit = kNoLimitBytes;
  for (const char* name : {"memory.max", "memory.limit_in_bytes"}) {
    limit = std::min(limit, leading_integer(first_line(group / name), kNoLimitBytes));
  }
  return std::min(machine, limit);
}

int64_t oom_kills() {
  const auto group = memory_group();
  for (const char* name : {"memory.events", "memory.oom_control"}) {
    const std::string count = field(group / name, "oom_kill ");
    if (!count.empty()) return leading_integer(count, -1);
  }
  return -1;
}

store::Env this_env(const std::string& libtorch_version) {
  utsname kernel{};
  uname(&kernel);
  store::Env env;
  env.host = kernel.nodename;
  env.cpu_model = field("/proc/cpuinfo", "model name");
  env.cpu_count = static_cast<int64_t>(physical_cores().size());
  env.ram_bytes = usable_memory_bytes();
  env.device_model = env.cpu_model;
  env.device_count = env.cpu_count;
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  env.clock_policy = governor.empty() ? "not exposed" : governor;
  env.libtorch = libtorch_version;
  env.compiler = std::string("g++ ") + __VERSION__;
  env.build_type = build_type();
  env.sanitizer = sanitizer();
  env.facts = {{"kernel", kernel.release}, {"architecture", kernel.machine}};
  env.machine_id = machine_id(env);
  env.env_id = environment_id(env);
  return env;
}

}  // namespace assay::host
