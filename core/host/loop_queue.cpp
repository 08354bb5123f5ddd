// The queue: which run starts next, on which devices, with what in its cell.json.
#include <algorithm>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/host/loop.h"
#include "core/host/machine.h"
#include "core/host/recovery.h"

namespace assay::host {
namespace {

constexpr auto kLockPoll = std::chrono::milliseconds(200);
constexpr int64_t kCollectiveTimeoutNs = 60'000'000'000;
constexpr int64_t kProcessOverheadBytes = int64_t{1} << 30;  // code's data, stacks, host buffers
constexpr const char* kCudaLibrary = "libtorch_cuda.so";

/// A set with a CUDA plugin has no template until fork has been verified on a GPU.
bool needs_cuda(const std::vector<UsedPlugin>& plugins) {
  static std::map<std::filesystem::path, bool> known;
  return std::any_of(plugins.begin(), plugins.end(), [](const UsedPlugin& plugin) {
    auto [entry, is_new] = known.try_emplace(plugin.path, false);
    if (is_new) entry->second = read_file(plugin.path).find(kCudaLibrary) != std::string::npos;
    return entry->second;
  });
}

std::vector<std::string> paths_of(const std::vector<UsedPlugin>& plugins) {
  std::vector<std::string> paths;
  for (const UsedPlugin& plugin : plugins) paths.push_back(plugin.path.string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// What a whole process may hold. run.memory_limit itself bounds tensors, in the allocator.
int64_t memory_ceiling(const std::optional<int64_t>& limit) {
  const int64_t usable = usable_memory_bytes();
  return limit ? std::min(usable, *limit + kProcessOverheadBytes) : usable;
}

/// A database that was deleted leaves folders whose names come again: they are kept aside.
void set_aside(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder)) return;
  for (int i = 1;; ++i) {
    const std::filesystem::path aside = folder.string() + ".old" + std::to_string(i);
    if (std::filesystem::exists(aside)) continue;
    return std::filesystem::rename(folder, aside);
  }
}

}  // namespace

/// Pairs that would not end in time stay queued; a pair that has begun is finished.
void Supervisor::Loop::drop_late_pairs() {
  if (!options_.no_pair_ends_after || waiting_.empty() || !running_.empty()) return;
  const auto partner = partner_.find(waiting_.front().run.run_id);
  if (partner == partner_.end() || ended_.contains(partner->second)) return;
  const auto pair = std::chrono::duration<double>(2 * typical_duration_s());
  if (std::chrono::steady_clock::now() + pair <= *options_.no_pair_ends_after) return;
  const size_t before = waiting_.size();
  std::erase_if(waiting_, [this](const StudyRun& r) { return partner_.contains(r.run.run_id); });
  totals_.runs -= static_cast<int64_t>(before - waiting_.size());
  observer_.note("the time is up: " + std::to_string((before - waiting_.size()) / 2) +
                 " pairs are left for the next run of this study");
  update_totals();
}

void Supervisor::Loop::schedule() {
  while (!stopping() && start_next()) {
  }
  close_if_done();
}

bool Supervisor::Loop::start_next() {
  drop_late_pairs();
  const auto next = next_that_fits();
  if (next == waiting_.end() || !devices_ready()) return false;
  const StudyRun run = std::move(*next);
  waiting_.erase(next);
  start(run);
  return true;
}

std::deque<StudyRun>::iterator Supervisor::Loop::next_that_fits() {
  if (options_.keys.timed) return running_.empty() ? waiting_.begin() : waiting_.end();
  return std::find_if(waiting_.begin(), waiting_.end(), [this](const StudyRun& run) {
    return devices_needed(run) <= free_devices_.size();
  });
}

/// A timed run has the machine to itself, also among supervisors.
bool Supervisor::Loop::devices_ready() {
  if (lock_held_) return true;
  lock_held_ = device_lock_.try_acquire(options_.keys.timed ? DeviceLock::Mode::exclusive
                                                            : DeviceLock::Mode::shared);
  if (lock_held_) return true;
  if (!lock_wait_told_) {
    observer_.note("waiting for the devices of this machine: " + device_lock_.holder() +
                   " runs a timed cell");
  }
  lock_wait_told_ = true;
  lock_timer_.expires_after(kLockPoll);
  lock_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) schedule();
  });
  return false;
}

size_t Supervisor::Loop::devices_needed(const StudyRun& run) const {
  if (options_.keys.timed) return device_count_;
  const auto config = nlohmann::json::parse(run.run.config_json);
  const int threads = config.value("train", nlohmann::json::object()).value("threads_per_rank", 1);
  return std::min(device_count_, static_cast<size_t>(world_of(config) * std::max(1, threads)));
}

std::vector<int> Supervisor::Loop::take_devices(size_t count) {
  std::vector<int> taken;
  while (taken.size() < count)
    taken.push_back(free_devices_.extract(free_devices_.begin()).value());
  return taken;
}

void Supervisor::Loop::give_back(const std::vector<int>& devices) {
  free_devices_.insert(devices.begin(), devices.end());
  if (!running_.empty() || !lock_held_ || pair_goes_on()) return;
  device_lock_.release();  // between two runs another supervisor may have its turn
  lock_held_ = lock_wait_told_ = false;
}

/// The second run of a pair follows at once: nobody else gets the devices in between.
bool Supervisor::Loop::pair_goes_on() const {
  const auto partner = partner_.find(last_ended_);
  return partner != partner_.end() && !stopping() && !waiting_.empty() &&
         waiting_.front().run.run_id == partner->second;
}

/// Attempts are counted in the database: a retry is newer than the queue.
std::optional<ResumePoint> Supervisor::Loop::resume_point(const StudyRun& run) const {
  std::vector<std::filesystem::path> attempts;
  if (resume_from_.uses_attempts()) {
    const store::Reader reader(store_.file());
    const auto table = reader.query("SELECT n FROM attempts WHERE run_id=?1 ORDER BY n DESC",
                                    {store::Value(run.run.run_id)});
    for (size_t i = 0; i < table.rows.size(); ++i) {
      attempts.push_back(attempt_folder(results_, run.run, *store::integer(table.at(i, "n"))));
    }
  }
  return resume_from_.point(attempts);
}

void Supervisor::Loop::start(const StudyRun& run) {
  std::optional<ResumePoint> from;
  try {
    from = resume_point(run);
  } catch (const Error& error) {  // readable when the queue was made
    observer_.note(run.run.slug + ": starts at step 0: " + error.what());
  }
  std::optional<store::Claim> claim;
  with_ballast([&] {
    claim = store_.claim({.study_id = options_.study_id,
                          .machine_id = env_.machine_id,
                          .supervisor_id = supervisor_id_,
                          .env_id = env_.env_id,
                          .timed = options_.keys.timed,
                          .run_id = run.run.run_id,
                          .resumed_step = from ? store::Int(from->step) : store::Int()});
  });
  if (!claim) {  // a joined supervisor was faster
    --totals_.runs;
    return update_totals();
  }
  const auto devices = take_devices(devices_needed(run));
  try {
    launch(run, *claim, from, devices);
  } catch (const std::exception& e) {
    running_.erase(claim->attempt_id);
    give_back(devices);
    const RunView view{.run_id = run.run.run_id,
                       .attempt_id = claim->attempt_id,
                       .n = claim->n,
                       .ordinal = run.run.ordinal,
                       .slot = run.run.slot,
                       .slug = run.run.slug};
    conclude(view, *claim, {.state = "infra", .reason = e.what()});
  }
}

void Supervisor::Loop::launch(const StudyRun& run, const store::Claim& claim,
                              const std::optional<ResumePoint>& from, std::vector<int> devices) {
  const store::Reader reader(store_.file());
  const auto plugins = used_plugins(reader, run.binaries_json);
  std::vector<store::AttemptPlugin> roles;
  for (const UsedPlugin& plugin : plugins) {
    roles.push_back({.plugin_id = plugin.plugin_id, .role = plugin.role, .git = plugin.git});
  }
  store_.add_attempt_plugins(claim.attempt_id, roles);
  const auto folder = attempt_folder(results_, run.run, claim.n);
  set_aside(folder);
  AttemptSpec spec{.claim = claim,
                   .folder = folder,
                   .cell = cell_document(run, claim, folder, from, devices, plugins),
                   .world = world_of(nlohmann::json::parse(run.run.config_json)),
                   .keys = options_.keys,
                   .patience = options_.patience};
  const int64_t id = claim.attempt_id;
  AttemptCallbacks callbacks{
      .started =
          [this, id] {
            const Attempt& attempt = *running_.at(id).attempt;
            with_ballast([&] { store_.start_attempt(id, attempt.processes()); });
            observer_.started(attempt.view(), totals_);
          },
      .progressed = [this, id] { observer_.progressed(running_.at(id).attempt->view(), totals_); },
      .ended = [this, id] { boost::asio::post(io_, [this, id] { on_ended(id); }); }};
  Launcher& launcher = options_.use_template && !needs_cuda(plugins)
                           ? static_cast<Launcher&>(templates_.launcher(paths_of(plugins)))
                           : exec_;
  auto& entry = running_[id];
  entry.devices = std::move(devices);
  entry.before = sample_load();
  entry.attempt = std::make_unique<Attempt>(io_, launcher, std::move(spec), std::move(callbacks));
  update_totals();
  entry.attempt->start();
}

nlohmann::json Supervisor::Loop::cell_document(const StudyRun& run, const store::Claim& claim,
                                               const std::filesystem::path& folder,
                                               const std::optional<ResumePoint>& from,
                                               const std::vector<int>& devices,
                                               const std::vector<UsedPlugin>& plugins) const {
  const auto config = nlohmann::json::parse(run.run.config_json);
  std::vector<int> cores;
  for (int device : devices) cores.push_back(cores_[static_cast<size_t>(device) % cores_.size()]);
  const auto& limit = options_.keys.memory_limit_bytes;
  return {{"schema", 1},
          {"attempt_id", claim.attempt_id},
          {"run_id", run.run.run_id},
          {"cell_id", run.run.cell_id},
          {"slug", run.run.slug},
          {"config", config},
          {"plugins", paths_of(plugins)},
          {"world", world_of(config)},
          {"rendezvous", (folder / "rendezvous").string()},
          {"spool_dir", folder.string()},
          {"memory_limit_bytes", limit ? nlohmann::json(*limit) : nlohmann::json(nullptr)},
          {"memory_ceiling_bytes", memory_ceiling(limit)},
          {"collective_timeout_ns", std::min(kCollectiveTimeoutNs, options_.keys.step_timeout_ns)},
          {"cores", cores},
          {"threads", config.value("train", nlohmann::json::object()).value("threads_per_rank", 1)},
          {"timed", options_.keys.timed},
          {"perturbation", run.run.purpose == "envelope" ? run.run.slot + 1 : 0},
          {"scheduled_monotonic_s", monotonic_s()},
          {"resume_from", from ? nlohmann::json(from->checkpoint.string()) : nlohmann::json()}};
}

}  // namespace assay::host
