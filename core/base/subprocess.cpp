// posix_spawn with two pipes and a pidfd, polled together.
#include "core/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "assay/error.h"
#include "core/base/clock.h"

extern char** environ;

namespace assay {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(std::string("no pipe: ") + std::strerror(errno));
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  Descriptor read, write;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& additions) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!additions.contains(text.substr(0, text.find('=')))) merged.push_back(text);
  }
  for (const auto& [name, value] : additions) merged.push_back(name + "=" + value);
  return merged;
}

pid_t start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
            const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, command[0].c_str(), &actions, &attributes,
                                  pointers(command).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw Error(command[0] + ": cannot be started: " + std::strerror(error));
  return pid;
}

/// Takes what is there; closes the pipe at its end.
void drain(Descriptor& fd, std::string& text) {
  std::array<char, 65536> piece;
  const ssize_t size = ::read(fd.get(), piece.data(), piece.size());
  if (size > 0) {
    text.append(piece.data(), static_cast<size_t>(size));
  } else if (size == 0 || errno != EINTR) {
    fd.reset();
  }
}

/// Collects output until the process has ended; false when the time is up.
bool collect(int process, Pipe& out, Pipe& err, double limit_s, ProcessResult& result) {
  const double end = monotonic_s() + limit_s;
  for (;;) {
    const double left_s = end - monotonic_s();
    if (left_s <= 0) return false;
    std::array<pollfd, 3> ready{{{process, POLLIN, 0},
                                 {out.read.get(), POLLIN, 0},
                                 {err.read.get(), POLLIN, 0}}};  // poll skips those below 0
    if (::poll(ready.data(), ready.size(), static_cast<int>(std::ceil(left_s * 1e3))) < 0) continue;
    if (ready[1].revents) drain(out.read, result.out);
    if (ready[2].revents) drain(err.read, result.err);
    const bool silent = !ready[1].revents && !ready[2].revents;
    if (ready[0].revents && silent) return true;  // a grandchild may hold the pipes open
  }
}

}  // namespace

std::string ProcessResult::ending() const {
  if (timed_out) return "no end within its time";
  if (signal == 0) return "exit code " + std::to_string(exit_code);
  const char* name = ::sigabbrev_np(signal);
  return name ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

ProcessResult run_process(const std::vector<std::string>& command, double limit_s,
                          const std::map<std::string, std::string>& environment) {
  Pipe out, err;
  const pid_t pid = start(command, merged_environment(environment), out, err);
  out.write.reset();
  err.write.reset();
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ProcessResult result;
  result.timed_out = !collect(process.get(), out, err, limit_s, result);
  if (result.timed_out) ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace assay
