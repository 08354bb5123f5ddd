// TemplateLauncher: starts ranks by forking a warmed-up template process; TemplatePool keeps two.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/host/child_watcher.h"
#include "core/host/exec_launcher.h"
#include "core/host/launcher.h"

namespace assay::host {

/// One template process with one set of plugins. When it cannot load them, dies while it does, or
/// must not fork, its ranks are started by exec, so that the fault shows in the cell that has it.
class TemplateLauncher final : public Launcher {
 public:
  TemplateLauncher(boost::asio::io_context& io, ChildWatcher& children,
                   const std::filesystem::path& executable,
                   const std::vector<std::string>& plugins);
  ~TemplateLauncher() override;
  void launch(RankLaunch launch, LaunchCallbacks callbacks) override;

  bool idle() const { return waiting_.empty() && ranks_.empty(); }

 private:
  enum class State { loading, ready, failed };
  void read();
  void handle(const nlohmann::json& message);
  void spawn(RankLaunch launch, LaunchCallbacks callbacks);
  void answer(const std::string& kind, const nlohmann::json& body);
  void fail();

  struct Rank {
    RankLaunch launch;  ///< until it has started: for a second try by exec
    LaunchCallbacks callbacks;
    bool started = false;
  };

  boost::asio::io_context& io_;
  ExecLauncher exec_;
  boost::asio::posix::stream_descriptor socket_;
  State state_ = State::loading;
  int64_t next_id_ = 1;
  std::vector<std::pair<RankLaunch, LaunchCallbacks>> waiting_;  ///< while it loads
  std::map<int64_t, Rank> ranks_;
};

/// At most `kept` templates, one per plugin set; the least recently used idle one goes first.
class TemplatePool {
 public:
  TemplatePool(boost::asio::io_context& io, ChildWatcher& children,
               std::filesystem::path executable, size_t kept = 2);
  Launcher& launcher(const std::vector<std::string>& plugins);
  void clear() { templates_.clear(); }

 private:
  struct Entry {
    std::vector<std::string> plugins;
    std::unique_ptr<TemplateLauncher> launcher;
  };
  void drop_idle();

  boost::asio::io_context& io_;
  ChildWatcher& children_;
  const std::filesystem::path executable_;
  const size_t kept_;
  std::list<Entry> templates_;  ///< most recently used first
};

}  // namespace assay::host
