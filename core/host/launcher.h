// Launcher: starts one rank of a cell, by exec or through a template, and tells how it ended.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>

#include "core/base/unique_fd.h"

namespace assay::host {

/// One rank to start. The descriptors become its stdout, stderr and event pipe.
struct RankLaunch {
  std::filesystem::path cell_file{};
  int rank = 0;
  UniqueFd out{}, err{}, events{};
};

/// Exactly one of started and refused is called, then exited after started. Never from inside
/// launch().
struct LaunchCallbacks {
  std::function<void(pid_t)> started{};
  std::function<void(const std::string& reason)> refused{};  ///< not the recipe's fault
  std::function<void(int wait_status)> exited{};
};

/// A wait status that nobody can tell: the rank's parent, a template, died and took it along.
constexpr int kStatusLost = -1;

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual void launch(RankLaunch launch, LaunchCallbacks callbacks) = 0;
};

}  // namespace assay::host
