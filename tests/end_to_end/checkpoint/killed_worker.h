// A real worker that is killed after a number of changes in its folder of checkpoints.
#pragma once

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "assay/error.h"
#include "core/base/unique_fd.h"

namespace assay {

/// Counts what happens to the files of a folder and of the folders that appear in it.
class FolderEvents {
 public:
  explicit FolderEvents(const std::filesystem::path& folder) : fd_(inotify_init1(IN_CLOEXEC)) {
    watch(folder);
  }
  int fd() const { return fd_.get(); }

  /// Takes the events that wait, at most as many as are missing to `limit`; how many there were.
  int take(int limit) {
    alignas(inotify_event) std::array<char, 4096> buffer;
    const ssize_t size = read(fd_.get(), buffer.data(), buffer.size());
    int count = 0;
    for (ssize_t at = 0; at < size && count < limit;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
      ++count;
      const bool folder = (event->mask & IN_ISDIR) != 0 && (event->mask & IN_CREATE) != 0;
      if (folder) watch(folders_.at(event->wd) / event->name);
    }
    return count;
  }

 private:
  void watch(const std::filesystem::path& folder) {
    const int id = inotify_add_watch(
        fd_.get(), folder.c_str(),
        IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE);
    if (id >= 0) folders_[id] = folder;  // it may be gone again
  }

  UniqueFd fd_;
  std::map<int, std::filesystem::path> folders_;
};

/// Starts the command and kills it after `events` changes below `folder`; how many were seen.
inline int run_and_kill(const std::vector<std::string>& command,
                        const std::filesystem::path& folder, int events) {
  FolderEvents watcher(folder);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  if (posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) {
    throw Error("cannot start " + command[0]);
  }
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  int seen = 0;
  std::array<pollfd, 2> waits{{{watcher.fd(), POLLIN, 0}, {process.get(), POLLIN, 0}}};
  while (seen < events && poll(waits.data(), waits.size(), -1) > 0) {
    if ((waits[0].revents & POLLIN) != 0) seen += watcher.take(events - seen);
    if ((waits[1].revents & POLLIN) != 0) break;  // it ended by itself
  }
  kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  return seen;
}

}  // namespace assay
