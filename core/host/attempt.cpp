// Launches ranks, listens to them, watches the clocks, and ends what hangs.
#include "core/host/attempt.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/base/spool.h"
#include "core/base/units.h"
#include "core/host/machine.h"

namespace assay::host {
namespace {

constexpr const char* kProcessList = "processes.json";
constexpr auto kWatchPeriod = std::chrono::milliseconds(1000);

void make_private_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) {
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  }
  if (error) {
    throw InfrastructureError("cannot make the folder '" + folder.string() +
                              "': " + error.message());
  }
}

void kill_group(pid_t leader, int signal) {
  if (kill(-leader, signal) != 0) kill(leader, signal);  // not yet a leader: it was just forked
}

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

struct Attempt::Rank {
  int index = 0;
  std::unique_ptr<RankStreams> streams{};
  pid_t pid = 0;
  int64_t pid_start = 0;
  bool ended = false;
  Clock::time_point heard_at{};
  RankEnd end{};
  int64_t steps = 0, allocated_bytes = 0;
  double tokens_per_s = 0, loss = 0;
};

Attempt::Attempt(boost::asio::io_context& io, Launcher& launcher, AttemptSpec spec,
                 AttemptCallbacks callbacks)
    : io_(io),
      launcher_(launcher),
      spec_(std::move(spec)),
      callbacks_(std::move(callbacks)),
      watch_timer_(io),
      kill_timer_(io) {}

Attempt::~Attempt() = default;

void Attempt::start() {
  make_private_folder(spec_.folder);
  make_private_folder(spec_.cell.at("rendezvous").get<std::string>());
  write_file_atomically(spec_.folder / "cell.json", spec_.cell.dump(1) + "\n");
  oom_kills_before_ = oom_kills();
  started_at_ = stepped_at_ = Clock::now();
  for (int rank = 0; rank < spec_.world; ++rank) {
    auto entry = std::make_unique<Rank>();
    entry->index = rank;
    entry->heard_at = started_at_;
    Rank* raw = entry.get();
    entry->streams = std::make_unique<RankStreams>(
        io_, spec_.folder / ("rank" + std::to_string(rank) + ".log"),
        [this, raw](const nlohmann::json& event) { on_event(*raw, event); },
        [this](const std::string& error) { stop(Stop::infra, error, true); });
    ranks_.push_back(std::move(entry));
  }
  for (int rank = 0; rank < spec_.world; ++rank) launch_rank(rank);
  watch();
}

void Attempt::launch_rank(int index) {
  Rank& rank = *ranks_[static_cast<size_t>(index)];
  RankLaunch launch{.cell_file = spec_.folder / "cell.json",
                    .rank = index,
                    .out = rank.streams->out().open(),
                    .err = rank.streams->err().open(),
                    .events = rank.streams->events().open()};
  LaunchCallbacks callbacks{.started = [this, &rank](pid_t pid) { on_started(rank, pid); },
                            .refused =
                                [this, &rank](const std::string& reason) {
                                  rank.end.error = reason;
                                  stop(Stop::infra, reason, true);
                                  rank_ended(rank);
                                },
                            .exited = [this, &rank](int status) { on_exit(rank, status); }};
  launcher_.launch(std::move(launch), std::move(callbacks));
}

void Attempt::on_started(Rank& rank, pid_t pid) {
  rank.pid = pid;
  rank.pid_start = process_start(pid);
  rank.end.launched = true;
  rank.heard_at = Clock::now();
  if (facts_.stop != Stop::none) return signal_all(SIGKILL);
  const bool all = std::all_of(ranks_.begin(), ranks_.end(), [](auto& r) { return r->pid != 0; });
  if (!all) return;
  write_process_list();
  callbacks_.started();
}

/// For a later supervisor, should this one die: PDEATHSIG reaches workers, not their children.
void Attempt::write_process_list() const {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& rank : ranks_) {
    list.push_back({{"rank", rank->index}, {"pid", rank->pid}, {"pid_start", rank->pid_start}});
  }
  write_file_atomically(spec_.folder / kProcessList, list.dump() + "\n");
}

void Attempt::on_event(Rank& rank, const nlohmann::json& event) {
  rank.heard_at = Clock::now();
  const std::string kind = event["e"].get<std::string>();
  try {
    if (kind == "phase") {
      rank.end.phase = event.at("phase").get<std::string>();
      stepped_at_ = rank.heard_at;
    } else if (kind == "progress") {
      rank.end.step = event.at("step").get<int64_t>();
      rank.steps = event.at("steps").get<int64_t>();
      const auto number = [&](const char* key) {
        return event.at(key).is_number() ? event.at(key).get<double>() : 0.0;
      };
      rank.tokens_per_s = number("tokens_per_s");
      rank.loss = number("loss");
      rank.allocated_bytes = event.value("allocated_bytes", int64_t{0});
      stepped_at_ = rank.heard_at;
    } else if (kind == "error") {
      rank.end.error = event.at("message").get<std::string>();
      if (event.value("component", nlohmann::json()).is_string()) {
        rank.end.component = event["component"].get<std::string>();
      }
    }
  } catch (const nlohmann::json::exception&) {
    return;  // a plugin's rubbish that happens to be JSON
  }
  if (rank.index == 0 && kind != "alive") callbacks_.progressed();
}

void Attempt::on_exit(Rank& rank, int wait_status) {
  rank.end.wait_status = wait_status;
  kill(-rank.pid, SIGKILL);  // children that a plugin left behind
  rank_ended(rank);
  const bool good = wait_status == 0;
  if (finished_ || good || facts_.stop != Stop::none) return;
  kill_later(spec_.patience.peer_grace);  // peers cannot go on; they may still say what they saw
}

void Attempt::rank_ended(Rank& rank) {
  rank.streams->finish();
  rank.ended = true;
  if (!all_ended() || finished_) return;
  finished_ = true;
  watch_timer_.cancel();
  kill_timer_.cancel();
  facts_.oom_kill = oom_kills() > oom_kills_before_;
  callbacks_.ended();
}

bool Attempt::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](auto& rank) { return rank->ended; });
}

void Attempt::watch() {
  watch_timer_.expires_after(
      std::min<std::chrono::milliseconds>(kWatchPeriod, spec_.patience.heartbeat_limit / 4));
  watch_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || finished_) return;
    check_time();
    if (!finished_) watch();
  });
}

void Attempt::check_time() {
  if (facts_.stop != Stop::none) return;
  const auto now = Clock::now();
  const auto& keys = spec_.keys;
  if (now - started_at_ > std::chrono::nanoseconds(keys.timeout_ns)) {
    return end_with_stack(Stop::timeout,
                          "not done after run.timeout " + print_duration(keys.timeout_ns));
  }
  if (now - stepped_at_ > std::chrono::nanoseconds(keys.step_timeout_ns)) {
    return end_with_stack(Stop::step_timeout,
                          "no step for run.step_timeout " + print_duration(keys.step_timeout_ns));
  }
  for (const auto& rank : ranks_) {
    if (rank->ended || now - rank->heard_at <= spec_.patience.heartbeat_limit) continue;
    return end_with_stack(
        Stop::heartbeat,
        "no heartbeat of rank " + std::to_string(rank->index) + " for " +
            print_duration(std::chrono::nanoseconds(spec_.patience.heartbeat_limit).count()));
  }
}

void Attempt::end_with_stack(Stop why, const std::string& text) {
  facts_.stop = why;
  facts_.stop_text = text;
  for (const auto& rank : ranks_) {
    if (rank->ended || rank->pid == 0) continue;
    rank->end.killed_by_us = true;
    kill(rank->pid, SIGQUIT);  // prints its stack
  }
  kill_later(spec_.patience.stack_grace);
}

void Attempt::stop(Stop why, const std::string& text, bool now) {
  if (finished_) return;
  if (facts_.stop == Stop::none) {
    facts_.stop = why;
    facts_.stop_text = text;
  }
  signal_all(now ? SIGKILL : SIGTERM);
  if (!now) kill_later(spec_.patience.stop_grace);
}

void Attempt::signal_all(int signal) {
  for (const auto& rank : ranks_) {
    if (rank->ended || rank->pid == 0) continue;
    rank->end.killed_by_us = true;
    kill_group(rank->pid, signal);
  }
}

void Attempt::kill_later(std::chrono::milliseconds delay) {
  kill_timer_.expires_after(delay);
  kill_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !finished_) signal_all(SIGKILL);
  });
}

RunView Attempt::view() const {
  RunView view{.run_id = spec_.claim.run.run_id,
               .attempt_id = spec_.claim.attempt_id,
               .n = spec_.claim.n,
               .ordinal = spec_.claim.run.ordinal,
               .slot = spec_.claim.run.slot,
               .slug = spec_.claim.run.slug,
               .state = "running",
               .elapsed_s = seconds(Clock::now() - started_at_)};
  if (ranks_.empty()) return view;
  const Rank& rank = *ranks_.front();
  view.phase = rank.end.phase;
  view.step = rank.end.step.value_or(0);
  view.steps = rank.steps;
  view.tokens_per_s = rank.tokens_per_s;
  view.loss = rank.loss;
  view.allocated_bytes = rank.allocated_bytes;
  return view;
}

store::AttemptStart Attempt::processes() const {
  const Rank& rank = *ranks_.front();
  return {.pgid = rank.pid,
          .pid = rank.pid,
          .pid_start = rank.pid_start,
          .log_path = rank.streams->log().path().string()};
}

store::AttemptProgress Attempt::progress() const {
  const Rank& rank = *ranks_.front();
  store::AttemptProgress progress{.last_step = rank.end.step};
  if (!rank.end.phase.empty()) progress.last_phase = rank.end.phase;
  if (rank.allocated_bytes > 0) progress.last_bytes = rank.allocated_bytes;
  return progress;
}

std::filesystem::path Attempt::spool_file(int rank) const {
  return spool_path(spec_.cell.at("spool_dir").get<std::string>(), spec_.claim.attempt_id, rank);
}

Outcome Attempt::outcome(const std::vector<bool>& spool_closed) const {
  AttemptFacts facts = facts_;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    RankEnd end = ranks_[i]->end;
    end.spool_closed = i < spool_closed.size() && spool_closed[i];
    end.stderr_tail = ranks_[i]->streams->stderr_tail();
    facts.ranks.push_back(std::move(end));
  }
  return decide(facts);
}

const LogFile& Attempt::log(int rank) const {
  return ranks_.at(static_cast<size_t>(rank))->streams->log();
}

void kill_left_over(const std::filesystem::path& folder, const std::string& boot) {
  std::ifstream stream(folder / kProcessList);
  const auto list = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (boot != boot_id() || !list.is_array()) return;
  for (const nlohmann::json& entry : list) {
    const pid_t pid = entry.value("pid", 0);
    const int64_t start = process_start(pid);
    // A number that another process has now is not ours; without a leader the group keeps it.
    if (pid > 1 && (start == 0 || start == entry.value("pid_start", int64_t{0}))) {
      kill(-pid, SIGKILL);
    }
  }
}

}  // namespace assay::host
