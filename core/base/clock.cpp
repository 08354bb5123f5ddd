// Clocks of the machine, and what tells two boots and two processes with one id apart.
#include "core/base/clock.h"

#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>

namespace assay {
namespace {

double seconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

int64_t now_us() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000 + t.tv_nsec / 1'000;
}

double monotonic_s() { return seconds_of(CLOCK_MONOTONIC); }

double thread_cpu_s() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

int64_t process_start(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat, '\0');  // a process that ends meanwhile is a failed read, no exception
  const size_t name_end = stat.rfind(')');  // the name in field 2 may hold spaces and brackets
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  return fields ? std::stoll(field) : 0;
}

}  // namespace assay
