// Limits by setrlimit, oom_score_adj and sched_setaffinity; stacks by backtrace_symbols_fd.
#include "core/worker/confine.h"

#include <execinfo.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "assay/error.h"

namespace assay::worker {
namespace {

constexpr int kFatalSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr int kFrames = 64;
constexpr size_t kSignalStackBytes = 64 * 1024;
alignas(16) char signal_stack[kSignalStackBytes];  // a handler needs one after a stack overflow

void print_stack(int signal) {
  const char* name = sigabbrev_np(signal);
  char head[64] = "signal SIG";
  std::strncat(head, name != nullptr ? name : "?", 16);
  std::strcat(head, ", stack:\n");
  [[maybe_unused]] const ssize_t sent = write(STDERR_FILENO, head, std::strlen(head));
  void* frames[kFrames];
  backtrace_symbols_fd(frames, backtrace(frames, kFrames), STDERR_FILENO);
}

void die_with_stack(int signal) {
  print_stack(signal);
  raise(signal);  // SA_RESETHAND: the default action
}

void limit_memory([[maybe_unused]] int64_t bytes) {
#ifndef __SANITIZE_ADDRESS__  // its shadow memory is private and writable: any limit would be met
  const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) {
    throw InfrastructureError(std::string("cannot set the memory limit: ") + std::strerror(errno));
  }
#endif
}

}  // namespace

std::vector<int> rank_cores(const std::vector<int>& cores, int rank, int world) {
  const int n = static_cast<int>(cores.size());
  if (n == 0) return {};
  if (n < world) return {cores[static_cast<size_t>(rank % n)]};
  return {cores.begin() + rank * n / world, cores.begin() + (rank + 1) * n / world};
}

void confine(const nlohmann::json& cell, int rank) {
  const auto limit = cell.find("memory_ceiling_bytes");
  if (limit != cell.end() && limit->is_number()) limit_memory(limit->get<int64_t>());
  std::ofstream("/proc/self/oom_score_adj") << 1000;
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  cpu_set_t set;
  CPU_ZERO(&set);
  const auto cores = cell.value("cores", std::vector<int>{});
  for (int core : rank_cores(cores, rank, cell.value("world", 1))) CPU_SET(core, &set);
  if (CPU_COUNT(&set) > 0 && sched_setaffinity(0, sizeof set, &set) != 0) {
    throw InfrastructureError(std::string("cannot bind to the cores of the cell: ") +
                              std::strerror(errno));
  }
}

void print_stacks_on_signals() {
  void* first[1];
  backtrace(first, 1);  // loads libgcc now: not possible in a handler
  const stack_t stack{signal_stack, 0, kSignalStackBytes};
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = die_with_stack;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_ONSTACK | SA_NODEFER);
  for (int signal : kFatalSignals) sigaction(signal, &action, nullptr);
  action.sa_handler = print_stack;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(SIGQUIT, &action, nullptr);
}

}  // namespace assay::worker
