// The loop itself, and the end of attempts: import, judge, write the state, retry what is infra.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/base/spool.h"
#include "core/evidence/settle.h"
#include "core/host/loop.h"
#include "core/store/spool_import.h"

namespace assay::host {
namespace {

constexpr auto kHeartbeatPeriod = std::chrono::seconds(5);

bool names_full_disk(const store::AttemptEnd& end) {
  const std::string words = std::strerror(ENOSPC);
  return end.reason.value_or("").find(words) != std::string::npos ||
         end.detail.value_or("").find(words) != std::string::npos;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

int64_t* count_of(Totals& totals, const std::string& state) {
  if (state == "ok") return &totals.ok;
  if (state == "oom") return &totals.oom;
  if (state == "fail") return &totals.fail;
  if (state == "timeout") return &totals.timeout;
  if (state == "killed") return &totals.killed;
  if (state == "invalid") return &totals.invalid;
  return &totals.infra;
}

}  // namespace

void Supervisor::Loop::run() {
  std::signal(SIGPIPE, SIG_IGN);  // a rank that is gone shows by its exit
  signals_.add(SIGINT);
  signals_.add(SIGTERM);
  wait_for_signal();
  tick();
  schedule();
  io_.run();
}

void Supervisor::Loop::tick() {
  tick_timer_.expires_after(kHeartbeatPeriod);
  tick_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || done_) return;
    with_ballast([&] {
      store_.heartbeat_supervisor(supervisor_id_);
      for (const auto& [id, entry] : running_) {
        store_.heartbeat(id, entry.attempt->progress());
        import_spools(*entry.attempt);
      }
    });
    for (const auto& [id, entry] : running_) observer_.progressed(entry.attempt->view(), totals_);
    tick();
  });
}

void Supervisor::Loop::import_spools(const Attempt& attempt) {
  for (int rank = 0; rank < attempt.spec().world; ++rank) {
    try {
      store::import_spool(store_, attempt.spec().claim.attempt_id, rank, attempt.spool_file(rank));
    } catch (const InfrastructureError&) {
      throw;
    } catch (const Error&) {
      continue;  // a row that fits no table: settle() meets it again and says so
    }
  }
}

void Supervisor::Loop::on_ended(int64_t attempt_id) {
  const auto found = running_.find(attempt_id);
  const Running entry = std::move(found->second);
  running_.erase(found);
  last_ended_ = entry.attempt->spec().claim.run.run_id;
  give_back(entry.devices);
  const auto load = load_figures(entry.before, sample_load());
  store::AttemptEnd end{.state = "infra", .reason = "the disk is full"};
  with_ballast([&] {
    store_.put_metrics(attempt_id, load);
    end = settle(*entry.attempt);
  });
  RunView view = entry.attempt->view();
  if (end.state != "infra" && end.state != "killed") durations_s_.push_back(view.elapsed_s);
  conclude(std::move(view), entry.attempt->spec().claim, end);
  schedule();
}

store::AttemptEnd Supervisor::Loop::settle(const Attempt& attempt) {
  const int64_t id = attempt.spec().claim.attempt_id;
  std::vector<bool> closed;
  std::string damage;
  for (int rank = 0; rank < attempt.spec().world; ++rank) {
    const auto file = attempt.spool_file(rank);
    closed.push_back(spool_outcome(file).has_value());
    try {
      const auto import = store::import_spool(store_, id, rank, file);
      if (import.corrupt) damage = import.corrupt->place + ": " + import.corrupt->text;
      if (import.torn) observer_.note(file.string() + ": its torn last line was dropped");
    } catch (const InfrastructureError&) {
      throw;
    } catch (const Error& e) {
      damage = e.what();
    }
  }
  store_.heartbeat(id, attempt.progress());
  Outcome outcome = attempt.outcome(closed);
  if (outcome.end.state == "ok" && damage.empty()) {
    const auto settled = evidence::settle(store_, id);
    if (!settled.violations.empty()) damage = settled.violations.front().text;
  }
  if (outcome.end.state == "ok" && !damage.empty()) {
    outcome.end.state = "invalid";
    outcome.end.reason = damage;
  }
  const LogFile& log = attempt.log(outcome.rank);
  outcome.end.log_path = log.path().string();
  outcome.end.log_bytes = log.total_bytes();
  outcome.end.log_sha256 = sha256_file(log.path());
  return std::move(outcome.end);
}

void Supervisor::Loop::conclude(RunView view, const store::Claim& claim,
                                const store::AttemptEnd& end) {
  with_ballast([&] { store_.finish_attempt(claim.attempt_id, end); });
  view.state = end.state;
  view.reason = end.reason.value_or("");
  if (names_full_disk(end)) on_full_disk(view.reason);
  if (retry_later(claim, end)) {
    update_totals();
    return observer_.ended(view, totals_);
  }
  ++*count_of(totals_, end.state);
  ended_[claim.run.run_id] = end.state;
  update_totals();
  const bool bad = end.state == "fail" || end.state == "timeout" || end.state == "invalid" ||
                   (end.state == "oom" && options_.strict_oom);
  if (bad && options_.fail_fast && !draining_) {
    draining_ = true;
    observer_.note("--fail-fast: no further run starts");
  }
  observer_.ended(view, totals_);
}

bool Supervisor::Loop::retry_later(const store::Claim& claim, const store::AttemptEnd& end) {
  if (end.state != "infra" || stopping()) return false;
  int& retried = retried_[claim.run.run_id];
  if (retried >= options_.keys.retries || options_.patience.retry_delays.empty()) return false;
  const auto& delays = options_.patience.retry_delays;
  const auto delay = delays[std::min(static_cast<size_t>(retried), delays.size() - 1)];
  ++retried;
  const auto partner = partner_.find(claim.run.run_id);
  if (partner != partner_.end()) leave_queue(partner->second);
  retries_.emplace(std::chrono::steady_clock::now() + delay, runs_.at(claim.run.run_id));
  observer_.note(claim.run.slug + ": tried again in " +
                 std::to_string(std::chrono::duration_cast<std::chrono::seconds>(delay).count()) +
                 " s (" + std::to_string(retried) + " of " + std::to_string(options_.keys.retries) +
                 "): " + end.reason.value_or(""));
  arm_retry_timer();
  return true;
}

void Supervisor::Loop::leave_queue(int64_t run_id) {
  std::erase_if(waiting_, [&](const StudyRun& run) { return run.run.run_id == run_id; });
}

void Supervisor::Loop::queue_again(const StudyRun& run) {
  const auto ended = ended_.find(run.run.run_id);
  if (ended != ended_.end()) {
    --*count_of(totals_, ended->second);
    ended_.erase(ended);
  }
  leave_queue(run.run.run_id);
  with_ballast([&] { store_.requeue_run(run.run.run_id); });
  waiting_.push_back(run);
}

void Supervisor::Loop::arm_retry_timer() {
  if (retries_.empty()) return;
  retry_timer_.expires_at(retries_.begin()->first);
  retry_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error || retries_.empty()) return;
    const auto now = std::chrono::steady_clock::now();
    while (!retries_.empty() && retries_.begin()->first <= now) {
      const StudyRun run = std::move(retries_.begin()->second);
      retries_.erase(retries_.begin());
      const auto partner = partner_.find(run.run.run_id);
      if (partner == partner_.end()) {
        queue_again(run);
        continue;
      }
      const StudyRun& other = runs_.at(partner->second);  // a pair is repeated whole
      const bool first = run.run.run_id < other.run.run_id;
      queue_again(first ? run : other);
      queue_again(first ? other : run);
    }
    arm_retry_timer();
    schedule();
  });
}

double Supervisor::Loop::typical_duration_s() const {
  return durations_s_.empty() ? 0 : median(durations_s_);
}

void Supervisor::Loop::update_totals() {
  totals_.queued = static_cast<int64_t>(waiting_.size() + retries_.size());
  totals_.running = static_cast<int64_t>(running_.size());
  const auto left = static_cast<double>(totals_.queued + totals_.running);
  totals_.eta_s = durations_s_.empty() ? -1 : median(durations_s_) * left;
}

void Supervisor::Loop::with_ballast(const std::function<void()>& write) {
  try {
    return write();
  } catch (const InfrastructureError& e) {
    on_full_disk(e.what());
  }
  try {
    write();
  } catch (const InfrastructureError& e) {
    observer_.note(std::string(e.what()) + ": this state is written by the next assay resume");
  }
}

void Supervisor::Loop::on_full_disk(const std::string& what) {
  if (!disk_full_) observer_.note("no further run starts: " + what);
  disk_full_ = true;
  ballast_.reset();
}

void Supervisor::Loop::on_signal(int signal) {
  stop_signal_ = stop_signal_ == SIGTERM ? SIGTERM : signal;
  if (stopping_ == Stopping::no && signal == SIGINT) {
    stopping_ = Stopping::finish_running;
    observer_.note("stopping: " + std::to_string(running_.size()) +
                   " running cells are finished first; Ctrl-C again ends them now");
  } else {
    const bool soft = stopping_ == Stopping::no || stopping_ == Stopping::finish_running;
    stopping_ = soft ? Stopping::terminate : Stopping::kill;
    observer_.note(soft ? "ending the running cells; Ctrl-C again kills them at once"
                        : "killing the running cells");
    stop_running();
  }
  wait_for_signal();
  close_if_done();
}

void Supervisor::Loop::wait_for_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int signal) {
    if (!error && !done_) on_signal(signal);
  });
}

void Supervisor::Loop::stop_running() {
  const std::string who = stop_signal_ == SIGTERM ? "stopped by SIGTERM" : "stopped by Ctrl-C";
  for (const auto& [id, entry] : running_) {
    entry.attempt->stop(Stop::user, who, stopping_ == Stopping::kill);
  }
}

void Supervisor::Loop::close_if_done() {
  const bool more = !stopping() && (!waiting_.empty() || !retries_.empty());
  if (!running_.empty() || more) return;
  done_ = true;
  signals_.cancel();
  tick_timer_.cancel();
  lock_timer_.cancel();
  retry_timer_.cancel();
  templates_.clear();
  children_.stop();
  if (lock_held_) device_lock_.release();
  lock_held_ = false;
}

}  // namespace assay::host
