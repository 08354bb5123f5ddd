// Wires the trainer to the spool, the event pipe and the limits of the cell.
#include "core/worker/run.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <omp.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/spool.h"
#include "core/base/worker_protocol.h"
#include "core/checkpoint/folder.h"
#include "core/sdk/loader.h"
#include "core/train/run.h"
#include "core/worker/confine.h"
#include "core/worker/events.h"
#include "core/worker/guard.h"

namespace assay::worker {
namespace {

using nlohmann::json;

/// Rows to the spool, signs of life to the supervisor, and how long each phase before the first
/// step took.
class WorkerReporter final : public train::Reporter {
 public:
  WorkerReporter(SpoolWriter& spool, EventPipe& events, double scheduled_s)
      : spool_(spool), events_(events), phase_start_s_(scheduled_s), scheduled_s_(scheduled_s) {}

  void row(const json& spool_row) override { spool_.append(spool_row); }

  void phase(std::string_view name) override {
    events_.phase(name);
    if (!starting_) return;
    const double now = monotonic_s();
    startup_figure(std::exchange(phase_, std::string(name)), now - phase_start_s_);
    phase_start_s_ = now;
    if (name != "step") return;
    startup_figure("total", now - scheduled_s_);
    starting_ = false;
  }

  void progress(int64_t step, int64_t steps, double tokens_per_s, double loss,
                int64_t allocated_bytes) override {
    events_.progress(step, steps, tokens_per_s, loss, allocated_bytes);
  }

 private:
  void startup_figure(const std::string& part, double seconds) {
    spool_.append({{"t", "metrics"},
                   {"name", "startup_" + part + "_s"},
                   {"value", seconds},
                   {"unit", "s"},
                   {"formula_id", "startup.v1"}});
  }

  SpoolWriter& spool_;
  EventPipe& events_;
  std::string phase_ = "launch";  ///< scheduled by the supervisor, not yet in this function
  double phase_start_s_;
  const double scheduled_s_;
  bool starting_ = true;
};

std::vector<std::filesystem::path> plugin_files(const json& plugins) {
  std::vector<std::filesystem::path> files;
  for (const json& file : plugins) files.emplace_back(file.get<std::string>());
  return files;
}

void load_missing_plugins(const json& cell) {
  if (loaded_plugins().empty()) load_plugins(plugin_files(cell.value("plugins", json::array())));
}

SpoolIdentity identity(const json& cell, int rank) {
  SpoolIdentity identity{.attempt_id = cell.value("attempt_id", int64_t{0}),
                         .rank = rank,
                         .cell_id = cell.value("cell_id", "")};
  if (identity.attempt_id == 0) {  // no supervisor: the spool must tell everything
    for (const char* key :
         {"recipe_id", "config_id", "config", "binaries", "study", "slug", "data_fingerprint"}) {
      if (cell.contains(key)) identity.extra[key] = cell[key];
    }
    if (const auto from = cell.find("resume_from"); from != cell.end() && from->is_string()) {
      const auto folder = checkpoint::find_checkpoint(from->get<std::string>());
      identity.extra["resumed_step"] = checkpoint::read_manifest(folder).step;
    }
  }
  return identity;
}

void train_rank(const json& cell, int rank, WorkerReporter& reporter) {
  reporter.phase("load");
  load_missing_plugins(cell);
  try {
    train::run_cell(cell, rank, reporter);
  } catch (const c10::OutOfMemoryError& e) {
    throw OutOfMemory(e.what_without_backtrace());
  } catch (const c10::Error& e) {
    const std::string text = e.what_without_backtrace();
    if (text.find("can't allocate memory") != std::string::npos) throw OutOfMemory(text);
    throw Error(text);
  }
}

}  // namespace

int run_rank(const json& cell, int rank, int events_fd) {
  EventPipe events(events_fd);
  print_stacks_on_signals();
  std::unique_ptr<SpoolWriter> spool;
  std::unique_ptr<Heartbeat> heartbeat;
  const int code = guarded(events, [&] {
    const double scheduled_s = cell.value("scheduled_monotonic_s", monotonic_s());
    confine(cell, rank);
    spool = std::make_unique<SpoolWriter>(cell.at("spool_dir").get<std::string>(),
                                          identity(cell, rank));
    heartbeat = std::make_unique<Heartbeat>(events, [&] { spool->sync_if_due(); });
    WorkerReporter reporter(*spool, events, scheduled_s);
    train_rank(cell, rank, reporter);
  });
  heartbeat.reset();
  const int closing = guarded(events, [&] {
    if (spool) spool->close(outcome_name(code));
  });
  return code == kExitOk ? closing : code;
}

void load_for_fork(const json& plugins) {
  at::set_num_threads(1);
  load_plugins(plugin_files(plugins));
}

void release_thread_pools() { omp_pause_resource_all(omp_pause_hard); }

}  // namespace assay::worker
