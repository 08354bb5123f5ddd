// ExecLauncher: starts the worker executable afresh; also starts template processes.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/host/child_watcher.h"
#include "core/host/launcher.h"

namespace assay::host {

/// A process to start. `fds[n]` becomes descriptor n of it; those of this process are
/// close-on-exec and do not come along.
struct Spawn {
  std::filesystem::path executable{};
  std::vector<std::string> arguments{};
  std::map<int, int> fds{};
};

/// Starts a process that leads its own session and dies with the calling thread (PDEATHSIG), so
/// call it from the main one. Throws InfrastructureError with the reason.
pid_t spawn_process(const Spawn& spawn);

class ExecLauncher final : public Launcher {
 public:
  ExecLauncher(boost::asio::io_context& io, ChildWatcher& children,
               std::filesystem::path executable);
  void launch(RankLaunch launch, LaunchCallbacks callbacks) override;

 private:
  boost::asio::io_context& io_;
  ChildWatcher& children_;
  const std::filesystem::path executable_;
};

}  // namespace assay::host
