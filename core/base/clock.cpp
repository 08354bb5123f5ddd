// Clocks of the machine, and what tells two boots and two processes with one id apart.
#include "core/base/clock.h"

#include <ctime>
#include <fstream>

#include "core/base/process_stat.h"

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

int64_t process_start(int pid) { return process_stat(pid).start; }

}  // namespace assay
