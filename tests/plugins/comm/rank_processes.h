// run_ranks: forks one child per rank, collects what each says and how it ended.
#pragma once

#include <ATen/Parallel.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "assay/communicator.h"

namespace assay::test {

/// How a rank ended: its report ("" when all went well, the text of an exception otherwise).
struct Ending {
  std::string report;
  int signal = 0;
};

/// A private folder that disappears with its owner.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay-comm-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline GroupSpec group_spec(std::string name, std::vector<int> ranks, int index,
                            const std::filesystem::path& rendezvous,
                            int64_t timeout_ns = 20'000'000'000) {
  return {.name = std::move(name),
          .ranks = std::move(ranks),
          .index = index,
          .rendezvous = rendezvous,
          .timeout_ns = timeout_ns};
}

inline std::vector<int> all_ranks(int n) {
  std::vector<int> ranks;
  for (int i = 0; i < n; ++i) ranks.push_back(i);
  return ranks;
}

inline std::string report_of(const std::function<void()>& body) {
  try {
    body();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

inline std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return text;
}

/// The parent must not have used threads of LibTorch before: a child inherits none of them.
inline std::vector<Ending> run_ranks(int n, const std::function<void(int rank)>& body) {
  at::set_num_threads(1);
  std::vector<pid_t> children;
  std::vector<int> pipes;
  for (int rank = 0; rank < n; ++rank) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that runs into its limit leaves nobody waiting
      close(ends[0]);
      const std::string report = report_of([&] { body(rank); });
      const ssize_t written = write(ends[1], report.data(), report.size());
      _exit(written == static_cast<ssize_t>(report.size()) ? 0 : 1);
    }
    close(ends[1]);
    children.push_back(child);
    pipes.push_back(ends[0]);
  }
  std::vector<Ending> endings;
  for (int rank = 0; rank < n; ++rank) {
    const auto index = static_cast<size_t>(rank);
    endings.push_back({.report = read_all(pipes[index])});
    int status = 0;
    waitpid(children[index], &status, 0);
    endings.back().signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  return endings;
}

}  // namespace assay::test
