// Supervisor::Loop: the queue, the devices, the running attempts and the signals of one study.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/host/attempt.h"
#include "core/host/child_watcher.h"
#include "core/host/device_lock.h"
#include "core/host/disk.h"
#include "core/host/exec_launcher.h"
#include "core/host/load_sample.h"
#include "core/host/resume_point.h"
#include "core/host/study.h"
#include "core/host/supervisor.h"
#include "core/host/template_launcher.h"
#include "core/store/reader.h"

namespace assay::host {

class Supervisor::Loop {
 public:
  Loop(store::Store& store, SupervisorOptions options, Observer& observer);
  ~Loop();

  void prepare();             ///< checks, recovery, the queue; throws before anything runs
  void run();                 ///< until nothing runs and nothing may start
  SupervisorResult finish();  ///< closes the supervisor's row, judges all runs

 private:
  struct Running {
    std::unique_ptr<Attempt> attempt{};
    std::vector<int> devices{};
    LoadSample before{};
  };
  enum class Stopping { no, finish_running, terminate, kill };

  // prepare
  void refuse_second_supervisor() const;
  std::vector<StudyRun> meant_runs(const store::Reader& reader) const;
  void enqueue_runs();
  bool selected(const StudyRun& run) const;
  void enqueue_pairs(const store::Reader& reader);
  void enqueue(StudyRun run);
  void check_devices() const;
  void check_resume_points() const;
  // queue
  void schedule();
  bool start_next();
  void drop_late_pairs();
  double typical_duration_s() const;  ///< median of the runs that ended, 0 before the first
  std::deque<StudyRun>::iterator next_that_fits();
  bool devices_ready();
  size_t devices_needed(const StudyRun& run) const;
  std::vector<int> take_devices(size_t count);
  void give_back(const std::vector<int>& devices);
  bool pair_goes_on() const;
  void start(const StudyRun& run);
  std::optional<ResumePoint> resume_point(const StudyRun& run) const;
  void launch(const StudyRun& run, const store::Claim& claim,
              const std::optional<ResumePoint>& from, std::vector<int> devices);
  nlohmann::json cell_document(const StudyRun& run, const store::Claim& claim,
                               const std::filesystem::path& folder,
                               const std::optional<ResumePoint>& from,
                               const std::vector<int>& devices,
                               const std::vector<UsedPlugin>& plugins) const;
  bool stopping() const { return stopping_ != Stopping::no || draining_ || disk_full_; }
  // attempts
  void on_ended(int64_t attempt_id);
  store::AttemptEnd settle(const Attempt& attempt);
  void conclude(RunView view, const store::Claim& claim, const store::AttemptEnd& end);
  bool retry_later(const store::Claim& claim, const store::AttemptEnd& end);
  void leave_queue(int64_t run_id);
  void queue_again(const StudyRun& run);
  void arm_retry_timer();
  void update_totals();
  void import_spools(const Attempt& attempt);
  // clock and signals
  void tick();
  void wait_for_signal();
  void on_signal(int signal);
  void stop_running();
  void close_if_done();
  /// Runs a write; when the disk is full gives up the ballast and tries once more.
  void with_ballast(const std::function<void()>& write);
  void on_full_disk(const std::string& what);

  store::Store& store_;
  const SupervisorOptions options_;
  const ResumeFrom resume_from_;
  Observer& observer_;
  const std::filesystem::path results_;
  const std::vector<int> cores_;  ///< one per physical core
  const size_t device_count_;     ///< those the study may use; more than cores if untimed
  store::Env env_{};
  int64_t supervisor_id_ = 0;

  boost::asio::io_context io_;
  ChildWatcher children_;
  ExecLauncher exec_;
  TemplatePool templates_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer tick_timer_, lock_timer_, retry_timer_;

  std::deque<StudyRun> waiting_{};
  std::multimap<std::chrono::steady_clock::time_point, StudyRun> retries_{};
  std::map<int64_t, Running> running_{};
  std::map<int64_t, StudyRun> runs_{};  ///< by run_id, those of this session
  std::map<int64_t, int> retried_{};
  std::map<int64_t, int64_t> partner_{};    ///< run_id of a pair -> the other one's
  std::map<int64_t, std::string> ended_{};  ///< states of runs that ended in this session
  int64_t last_ended_ = 0;                  ///< run_id
  std::set<int> free_devices_{};
  DeviceLock device_lock_;
  bool lock_held_ = false, lock_wait_told_ = false;
  std::unique_ptr<Ballast> ballast_{};

  Totals totals_{};
  std::vector<double> durations_s_{};
  Stopping stopping_ = Stopping::no;
  int stop_signal_ = 0;
  bool draining_ = false;  ///< --fail-fast: a run was bad
  bool disk_full_ = false;
  bool done_ = false;  ///< nothing is armed again; handlers may still be on their way
  bool closed_ = false;
};

}  // namespace assay::host
