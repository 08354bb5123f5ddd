// SIGCHLD and waitpid, one known child at a time.
#include "core/host/child_watcher.h"

#include <sys/wait.h>

#include <boost/asio/post.hpp>
#include <csignal>
#include <utility>
#include <vector>

namespace assay::host {

ChildWatcher::ChildWatcher(boost::asio::io_context& io) : io_(io), signals_(io, SIGCHLD) { wait(); }

void ChildWatcher::watch(pid_t pid, OnExit on_exit) {
  children_[pid] = std::move(on_exit);
  boost::asio::post(io_, [this] { reap(); });  // it may be dead already
}

void ChildWatcher::stop() {
  stopped_ = true;
  children_.clear();
  signals_.cancel();
}

void ChildWatcher::wait() {
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (error || stopped_) return;
    reap();
    wait();
  });
}

void ChildWatcher::reap() {
  std::vector<std::pair<OnExit, int>> ended;
  for (auto child = children_.begin(); child != children_.end();) {
    int status = 0;
    if (waitpid(child->first, &status, WNOHANG) == child->first) {
      ended.emplace_back(std::move(child->second), status);
      child = children_.erase(child);
    } else {
      ++child;
    }
  }
  for (auto& [on_exit, status] : ended) on_exit(status);  // may watch new children
}

}  // namespace assay::host
