// Before and after the loop: other supervisors, recovery, the queue, the exit code.
#include <algorithm>
#include <ctime>
#include <iterator>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/diagnostic.h"
#include "core/base/files.h"
#include "core/host/comparisons.h"
#include "core/host/loop.h"
#include "core/host/machine.h"
#include "core/host/recovery.h"

namespace assay::host {
namespace {

constexpr int kOk = 0, kBad = 1, kInfra = 4, kInterrupted = 130, kTerminated = 143;
constexpr int64_t kMicro = 1'000'000;

std::string print_time(int64_t us) {
  const std::time_t seconds = us / kMicro;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// A timed study never uses more devices than there are: its figures would be of a shared core.
size_t usable_devices(const grid::RunKeys& keys, size_t cores) {
  const auto asked = static_cast<size_t>(std::max(0, keys.devices));
  if (asked == 0) return cores;
  return keys.timed ? std::min(asked, cores) : asked;
}

std::filesystem::path results_folder(const store::Store& store) {
  return std::filesystem::absolute(store.file()).parent_path();
}

int exit_code(const Totals& all, bool strict_oom) {
  if (all.fail + all.timeout + all.invalid > 0 || (strict_oom && all.oom > 0)) return kBad;
  const bool unfinished = all.infra + all.killed + all.queued + all.running > 0;
  return all.runs == 0 || unfinished ? kInfra : kOk;
}

}  // namespace

Totals count_states(const std::vector<StudyRun>& runs) {
  Totals totals;
  const std::map<std::string, int64_t*> counts = {
      {"queued", &totals.queued}, {"running", &totals.running}, {"ok", &totals.ok},
      {"oom", &totals.oom},       {"fail", &totals.fail},       {"timeout", &totals.timeout},
      {"killed", &totals.killed}, {"infra", &totals.infra},     {"invalid", &totals.invalid}};
  for (const StudyRun& run : runs) {
    ++*counts.at(run.state);
    ++totals.runs;
  }
  return totals;
}

Supervisor::Loop::Loop(store::Store& store, SupervisorOptions options, Observer& observer)
    : store_(store),
      options_(std::move(options)),
      resume_from_(options_.resume_from),
      observer_(observer),
      results_(results_folder(store)),
      cores_(physical_cores()),
      device_count_(usable_devices(options_.keys, cores_.size())),
      children_(io_),
      exec_(io_, children_, options_.worker),
      templates_(io_, children_, options_.worker),
      signals_(io_),
      tick_timer_(io_),
      lock_timer_(io_),
      retry_timer_(io_),
      device_lock_(runtime_dir(), "cpu") {}

Supervisor::Loop::~Loop() {
  running_.clear();
  if (supervisor_id_ == 0 || closed_) return;
  try {
    store_.end_supervisor(supervisor_id_, "failed");
  } catch (const std::exception&) {
    return;  // the next supervisor finds the process gone
  }
}

void Supervisor::Loop::prepare() {
  std::filesystem::create_directories(results_);
  require_space(results_, free_bytes(results_), 0);
  // One supervisor at a time looks around and writes its row, so that two never miss each other.
  DeviceLock start(runtime_dir(), "start-" + sha256(store_.file().string()).substr(0, 16));
  start.acquire();
  refuse_second_supervisor();
  for (const std::string& line : recover(store_)) observer_.note(line);
  env_ = this_env(grid::installed_binaries().libtorch);
  store_.add_env(env_);
  supervisor_id_ = store_.start_supervisor({.study_id = options_.study_id,
                                            .env_id = env_.env_id,
                                            .argv = options_.argv,
                                            .boot_id = boot_id(),
                                            .pid = getpid(),
                                            .pid_start = process_start(getpid())});
  ballast_ = std::make_unique<Ballast>(results_);
  for (size_t i = 0; i < device_count_; ++i) free_devices_.insert(static_cast<int>(i));
  enqueue_runs();
  check_devices();
  check_resume_points();
}

void Supervisor::Loop::refuse_second_supervisor() const {
  if (options_.join) return;
  for (const store::Supervisor& other : store_.open_supervisors(options_.study_id)) {
    if (!is_alive(other)) continue;
    throw DiagnosticError(
        Diagnostic{.id = "H01",
                   .place = store_.file().string(),
                   .text = "this study is being run by another supervisor: pid " +
                           std::to_string(other.pid) + ", started " + print_time(other.started_us),
                   .hints = {"wait for it (assay status), or work beside it with --join"}});
  }
}

/// What this session is about: the named runs, or those of the study with its pairs.
std::vector<StudyRun> Supervisor::Loop::meant_runs(const store::Reader& reader) const {
  if (!options_.runs.empty()) return named_runs(reader, options_.study_id, options_.runs);
  std::vector<StudyRun> meant = study_runs(reader, options_.study_id, env_.machine_id);
  for (PairRuns& pair : pair_runs(reader, options_.study_id, env_.machine_id)) {
    meant.push_back(std::move(pair.first));
    meant.push_back(std::move(pair.second));
  }
  std::ranges::move(envelope_runs(reader, options_.study_id, env_.machine_id),
                    std::back_inserter(meant));
  std::ranges::move(trial_runs(reader, options_.study_id, env_.machine_id),
                    std::back_inserter(meant));
  std::erase_if(meant, [this](const StudyRun& run) { return !selected(run); });
  return meant;
}

bool Supervisor::Loop::selected(const StudyRun& run) const {
  return !options_.select || options_.select(run.run);
}

void Supervisor::Loop::enqueue_runs() {
  const bool named = !options_.runs.empty();
  if (!named) store_.ensure_runs(options_.study_id, env_.machine_id);
  const store::Reader reader(store_.file());
  const auto take = [this](std::vector<StudyRun> runs) {
    for (StudyRun& run : runs) {
      if (contains(options_.only, run.state)) enqueue(std::move(run));
    }
  };
  const auto take_selected = [&](std::vector<StudyRun> runs) {
    std::erase_if(runs, [this](const StudyRun& run) { return !selected(run); });
    take(std::move(runs));
  };
  if (named) {
    take(named_runs(reader, options_.study_id, options_.runs));
  } else {
    take_selected(study_runs(reader, options_.study_id, env_.machine_id));
    enqueue_pairs(reader);
    take_selected(envelope_runs(reader, options_.study_id, env_.machine_id));
    take_selected(trial_runs(reader, options_.study_id, env_.machine_id));
  }
  totals_.runs = static_cast<int64_t>(waiting_.size());
  update_totals();
}

/// A pair whose one run is missing is run again whole: its two must lie back to back.
void Supervisor::Loop::enqueue_pairs(const store::Reader& reader) {
  bool any = false;
  for (PairRuns& pair : pair_runs(reader, options_.study_id, env_.machine_id)) {
    if (!selected(pair.first) || !selected(pair.second)) continue;
    const bool running = pair.first.state == "running" || pair.second.state == "running";
    if (running || !(contains(options_.only, pair.first.state) ||
                     contains(options_.only, pair.second.state))) {
      continue;
    }
    any = true;
    partner_[pair.first.run.run_id] = pair.second.run.run_id;
    partner_[pair.second.run.run_id] = pair.first.run.run_id;
    enqueue(std::move(pair.first));
    enqueue(std::move(pair.second));
  }
  if (!any || options_.keys.timed) return;
  throw DiagnosticError(Diagnostic{
      .id = "H06",
      .place = options_.study,
      .text = "pairs are always timed, one run at a time; this study has run.timed: false",
      .hints = {"set run.timed: true, or compare losses alone with pairs: 0"}});
}

void Supervisor::Loop::enqueue(StudyRun run) {
  if (run.state != "queued") store_.requeue_run(run.run.run_id);
  run.state = "queued";
  runs_[run.run.run_id] = run;
  waiting_.push_back(std::move(run));
}

void Supervisor::Loop::check_devices() const {
  std::vector<Diagnostic> findings;
  std::set<std::string> told;
  for (const StudyRun& run : waiting_) {
    const int world = world_of(nlohmann::json::parse(run.run.config_json));
    if (static_cast<size_t>(world) <= device_count_ || !told.insert(run.run.slug).second) continue;
    findings.push_back(
        {.id = "H02",
         .place = run.run.slug,
         .text = "its " + std::to_string(world) + " ranks need " + std::to_string(world) +
                 " devices; there are " + std::to_string(device_count_) +
                 " (a CPU device is one physical core)",
         .hints = {options_.keys.timed
                       ? "make the mesh smaller, or leave the cell out with --filter"
                       : "make the mesh smaller, or let ranks share cores with --devices " +
                             std::to_string(world)}});
  }
  if (!findings.empty()) throw DiagnosticError(std::move(findings));
}

/// A step that a run never saved is told before anything starts.
void Supervisor::Loop::check_resume_points() const {
  if (!resume_from_.uses_attempts()) return;
  std::vector<Diagnostic> findings;
  for (const StudyRun& run : waiting_) {
    try {
      if (resume_point(run)) continue;
      observer_.note(run.run.slug + ": has no checkpoint yet and starts at step 0");
    } catch (const Error& error) {
      findings.push_back(
          {.id = "R-CKPT", .place = run.run.slug, .text = error.what(), .hints = {error.hint()}});
    }
  }
  if (!findings.empty()) throw DiagnosticError(std::move(findings));
}

SupervisorResult Supervisor::Loop::finish() {
  ballast_.reset();
  const store::Reader reader(store_.file());
  SupervisorResult result{
      .exit_code = exit_code(count_states(meant_runs(reader)), options_.strict_oom),
      .totals = totals_};
  if (disk_full_) result.exit_code = kInfra;
  if (stop_signal_ == SIGINT) result.exit_code = kInterrupted;
  if (stop_signal_ == SIGTERM) result.exit_code = kTerminated;
  store_.end_supervisor(supervisor_id_, stop_signal_ != 0 ? "stopped"
                                        : disk_full_      ? "disk full"
                                                          : "done");
  closed_ = true;
  store_.checkpoint();
  return result;
}

}  // namespace assay::host
