// The fork server: one thread, one poll loop over the supervisor's socket and the children.
#include "core/worker/template.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/base/unique_fd.h"
#include "core/base/worker_protocol.h"

namespace assay::worker {
namespace {

int thread_count() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
  }
  return 0;
}

sigset_t child_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  return set;
}

class Server {
 public:
  Server(int socket, const TemplateHooks& hooks) : socket_(socket), hooks_(hooks) {
    const sigset_t set = child_signal();
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  int serve() {
    for (;;) {
      pollfd waits[] = {{socket_, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
      if (poll(waits, 2, -1) < 0 && errno != EINTR) return kExitInfrastructure;
      if (waits[1].revents != 0) reap();
      if (waits[0].revents == 0) continue;
      auto message = receive_message(socket_, false);
      if (!message) continue;
      if (message->end) return kExitOk;
      handle(*message);
    }
  }

 private:
  void handle(Message& message) {
    const nlohmann::json& body = message.body;
    if (body.contains("load")) {
      send_message(socket_, load(body["load"].value("plugins", nlohmann::json::array())));
    } else if (body.contains("spawn")) {
      spawn(body["spawn"], message.fds);
    }
  }

  nlohmann::json load(const nlohmann::json& plugins) {
    try {
      if (hooks_.load) hooks_.load(plugins);
      return {{"loaded", nlohmann::json::object()}};
    } catch (const std::exception& e) {
      return {{"error", e.what()}};
    }
  }

  void spawn(const nlohmann::json& request, std::vector<UniqueFd>& fds) {
    const int64_t id = request.value("id", int64_t{0});
    const std::string refusal = fds.size() == 3 ? why_not() : "three descriptors must come along";
    const pid_t parent = getpid();
    const pid_t child = refusal.empty() ? fork() : -1;
    if (child == 0) run_child(parent, request, fds);
    if (child > 0) {
      children_[child] = id;
      send_message(socket_, {{"spawned", {{"id", id}, {"pid", child}}}});
    } else {
      const std::string reason = refusal.empty() ? std::strerror(errno) : refusal;
      send_message(socket_, {{"refused", {{"id", id}, {"reason", reason}}}});
    }
  }

  std::string why_not() const {
    if (hooks_.before_fork) hooks_.before_fork();
    const int threads = thread_count();
    if (threads == 1) return {};
    return "the template has " + std::to_string(threads) +
           " threads: a plugin started one while it was loaded";
  }

  [[noreturn]] void run_child(pid_t parent, const nlohmann::json& request,
                              std::vector<UniqueFd>& fds) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kExitInfrastructure);  // it died before the line above
    setsid();
    const sigset_t set = child_signal();
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    signals_.reset();
    close(socket_);
    dup2(fds[0].get(), STDOUT_FILENO);
    dup2(fds[1].get(), STDERR_FILENO);
    fds.resize(3);
    const int events = fds[2].release();
    fds.clear();
    int code = kExitInfrastructure;
    try {
      const auto cell = nlohmann::json::parse(read_file(request.at("cell").get<std::string>()));
      code = hooks_.child(cell, request.at("rank").get<int>(), events);
    } catch (const std::exception& e) {
      std::cerr << "error: " << e.what() << std::endl;
    }
    std::cout.flush();
    std::fflush(nullptr);
    _exit(code);
  }

  void reap() {
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof info) > 0) {
    }
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto child = children_.find(pid);
      if (child == children_.end()) continue;
      send_message(socket_,
                   {{"exited", {{"id", child->second}, {"pid", pid}, {"status", status}}}});
      children_.erase(child);
    }
  }

  const int socket_;
  const TemplateHooks& hooks_;
  UniqueFd signals_;
  std::map<pid_t, int64_t> children_;
};

}  // namespace

int serve_template(int socket, const TemplateHooks& hooks) { return Server(socket, hooks).serve(); }

}  // namespace assay::worker
