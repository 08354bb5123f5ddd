// Boost.Process with a set-up of our own between fork and exec.
#include "core/host/exec_launcher.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/error.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
#include <csignal>
#include <utility>

#include "assay/error.h"
#include "core/base/worker_protocol.h"

namespace assay::host {
namespace {

constexpr int kEventsFd = 3;

/// Runs in the child; only async-signal-safe calls.
void set_up_child(pid_t parent, const std::map<int, int>& fds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitInfrastructure);  // it died before the line above
  setsid();
  signal(SIGPIPE, SIG_DFL);
  signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  for (const auto& [to, from] : fds) {
    if (to == from) {
      fcntl(to, F_SETFD, 0);
    } else {
      dup2(from, to);
    }
  }
}

}  // namespace

pid_t spawn_process(const Spawn& spawn) {
  namespace bp = boost::process;
  // High numbers, so that no target below is the source of a later one.
  std::map<int, int> high;
  std::vector<UniqueFd> owned;
  for (const auto& [to, from] : spawn.fds) {
    constexpr int kAboveTargets = 16;
    owned.emplace_back(fcntl(from, F_DUPFD_CLOEXEC, kAboveTargets));
    high[to] = owned.back().get();
  }
  const pid_t parent = getpid();
  std::error_code error;
  bp::child child(
      bp::exe = spawn.executable.string(), bp::args = spawn.arguments, error,
      bp::extend::on_exec_setup = [&](auto&) { set_up_child(parent, high); });
  if (error) {
    throw InfrastructureError("cannot start '" + spawn.executable.string() +
                              "': " + error.message());
  }
  const pid_t pid = child.id();
  child.detach();
  return pid;
}

ExecLauncher::ExecLauncher(boost::asio::io_context& io, ChildWatcher& children,
                           std::filesystem::path executable)
    : io_(io), children_(children), executable_(std::move(executable)) {}

void ExecLauncher::launch(RankLaunch launch, LaunchCallbacks callbacks) {
  try {
    const pid_t pid = spawn_process(
        {.executable = executable_,
         .arguments = {"run", launch.cell_file.string(), "--rank", std::to_string(launch.rank),
                       "--events-fd", std::to_string(kEventsFd)},
         .fds = {{STDOUT_FILENO, launch.out.get()},
                 {STDERR_FILENO, launch.err.get()},
                 {kEventsFd, launch.events.get()}}});
    boost::asio::post(io_, [this, pid, callbacks = std::move(callbacks)]() mutable {
      callbacks.started(pid);
      children_.watch(pid, std::move(callbacks.exited));
    });
  } catch (const InfrastructureError& e) {
    boost::asio::post(io_, [refused = std::move(callbacks.refused),
                            reason = std::string(e.what())] { refused(reason); });
  }
}

}  // namespace assay::host
