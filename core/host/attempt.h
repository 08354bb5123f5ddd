// Attempt: one set of worker processes of a claimed run, from launch to the last rank's end.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/host/launcher.h"
#include "core/host/observer.h"
#include "core/host/outcome.h"
#include "core/host/rank_stream.h"
#include "core/host/supervisor.h"

namespace assay::host {

struct AttemptSpec {
  store::Claim claim{};
  std::filesystem::path folder{};  ///< of this attempt; created with mode 0700
  nlohmann::json cell{};           ///< what cell.json holds
  int world = 1;
  grid::RunKeys keys{};
  Patience patience{};
};

/// What the supervisor learns while the ranks run.
struct AttemptCallbacks {
  std::function<void()> started{};     ///< all ranks have a pid
  std::function<void()> progressed{};  ///< a phase or a step of rank 0
  std::function<void()> ended{};       ///< nothing of it runs any more
};

class Attempt {
 public:
  Attempt(boost::asio::io_context& io, Launcher& launcher, AttemptSpec spec,
          AttemptCallbacks callbacks);
  ~Attempt();

  /// Writes the folder and starts the ranks. Throws InfrastructureError; then nothing runs.
  void start();
  /// SIGTERM, and SIGKILL after patience.stop_grace; `now`: SIGKILL at once.
  void stop(Stop why, const std::string& text, bool now);

  const AttemptSpec& spec() const { return spec_; }
  RunView view() const;
  store::AttemptStart processes() const;  ///< of rank 0
  store::AttemptProgress progress() const;
  std::filesystem::path spool_file(int rank) const;
  /// After `ended`; `spool_closed` per rank, as imported.
  Outcome outcome(const std::vector<bool>& spool_closed) const;
  const LogFile& log(int rank) const;
  std::vector<std::filesystem::path> spools() const;

 private:
  struct Rank;
  using Clock = std::chrono::steady_clock;

  void launch_rank(int rank);
  void on_started(Rank& rank, pid_t pid);
  void on_event(Rank& rank, const nlohmann::json& event);
  void on_exit(Rank& rank, int wait_status);
  void rank_ended(Rank& rank);
  void write_process_list() const;
  void watch();
  void check_time();
  void end_with_stack(Stop why, const std::string& text);
  void signal_all(int signal);
  void kill_later(std::chrono::milliseconds delay);
  bool all_ended() const;

  boost::asio::io_context& io_;
  Launcher& launcher_;
  const AttemptSpec spec_;
  const AttemptCallbacks callbacks_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  boost::asio::steady_timer watch_timer_, kill_timer_;
  Clock::time_point started_at_{}, stepped_at_{};
  AttemptFacts facts_{};
  int64_t oom_kills_before_ = 0;
  bool finished_ = false;
};

/// Kills what is left of the process groups that `folder` lists, if they are still the same ones.
void kill_left_over(const std::filesystem::path& folder, const std::string& boot_id);

}  // namespace assay::host
