// Each fault in its plainest form.
#include "tests/fake_worker/faults.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <vector>

#include "assay/error.h"

namespace assay::fake {
namespace {

constexpr size_t kMiB = 1 << 20;
constexpr unsigned kForeverSeconds = 3600;

void crash() {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}

void print_rubbish() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (int i = 0; i < 100; ++i) std::cout << bytes << "{\"e\":\"progress\"}\n{\"e\":1}\n[[[\n";
  std::cout.flush();
  for (int fd = 3; fd < 16; ++fd) {  // a plugin may even hit the event pipe
    struct stat info {};
    if (fstat(fd, &info) != 0 || !S_ISFIFO(info.st_mode)) continue;
    [[maybe_unused]] const ssize_t n = write(fd, "\n{\"e\":\"progress\"}\nnull\n{{{\n", 27);
  }
}

void hang() {
  for (;;) sleep(kForeverSeconds);  // a signal handler ends a sleep
}

void eat_memory() {
  std::vector<std::string> eaten;
  for (;;) eaten.emplace_back(64 * kMiB, 'x');
}

void append_to(const std::filesystem::path& spool, const std::string& bytes) {
  const int fd = open(spool.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  [[maybe_unused]] const ssize_t n = write(fd, bytes.data(), bytes.size());
  close(fd);
}

/// A child in the group that keeps the pipes open and never ends.
void leave_orphan() {
  if (fork() == 0) {
    std::cout << "orphan " << getpid() << std::endl;
    sleep(kForeverSeconds);
    _exit(0);
  }
}

}  // namespace

void commit(const std::string& behaviour, const std::filesystem::path& spool) {
  const std::map<std::string, std::function<void()>> faults = {
      {"ok", [] {}},
      {"nan", [] {}},
      {"crash", crash},
      {"abort", [] { std::abort(); }},
      {"throw", [] { throw std::runtime_error("lion: momentum is missing"); }},
      {"throw_int", [] { throw 7; }},
      {"hang", hang},
      {"stopped", [] { raise(SIGSTOP); }},
      {"deaf",
       [] {
         std::signal(SIGTERM, SIG_IGN);
         hang();
       }},
      {"exit3", [] { std::exit(3); }},
      {"exit0", [] { std::exit(0); }},
      {"killed", [] { raise(SIGKILL); }},
      {"rubbish", print_rubbish},
      {"eat_memory", eat_memory},
      {"torn_spool",
       [&] {
         append_to(spool, "1234");
         raise(SIGSEGV);
       }},
      {"damaged_spool", [&] { append_to(spool, "00000000 {\"t\":\"steps\"}\n"); }},
      {"infra", [] { throw InfrastructureError("the peer at rank 1 is gone"); }},
      {"full_disk",
       [] { throw InfrastructureError(std::string("cannot append: ") + std::strerror(ENOSPC)); }},
      {"orphan", leave_orphan},
  };
  const auto fault = faults.find(behaviour);
  if (fault == faults.end()) throw Error("no behaviour '" + behaviour + "'");
  fault->second();
}

}  // namespace assay::fake
