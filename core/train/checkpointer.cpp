// The copy is taken between two steps; the writer reads the copy and nothing of the run.
#include "core/train/checkpointer.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/checkpoint/file.h"
#include "core/checkpoint/folder.h"
#include "core/checkpoint/writer.h"
#include "core/train/checkpoint.h"

namespace assay::train {
namespace {

constexpr double kPeerLimitS = 600;  // the slowest rank's disk

void barrier(Assembly& a) {
  const PhaseScope phase("checkpoint");
  a.groups(MeshGroup::world).barrier().wait();
}

}  // namespace

CheckpointSettings checkpoint_settings(const nlohmann::json& train, std::filesystem::path folder) {
  CheckpointSettings s{.every = train.value("checkpoint_every", int64_t{0}),
                       .keep = train.value("keep", int64_t{10}),
                       .async = train.value("checkpoint_async", false),
                       .folder = std::move(folder)};
  if (s.keep == 1) {
    throw Error("[R-CKPT] train.keep is 1: one good copy has to stay while the next is written",
                "0 keeps all, 2 or more that many");
  }
  return s;
}

struct Checkpointer::Job {
  checkpoint::Manifest manifest{};  ///< without tensors
  std::vector<checkpoint::ShardTensor> shard{};
  std::vector<Tensor> copies{};
  int rank = 0;
  SaveReport report{};
};

Checkpointer::Checkpointer(Assembly& assembly, CheckpointSettings settings, nlohmann::json config)
    : a_(assembly), settings_(std::move(settings)), config_(std::move(config)) {
  if (settings_.every <= 0) return;
  if (a_.mesh.rank() == 0) {
    checkpoint::make_folder(settings_.folder);
    checkpoint::remove_leftovers(settings_.folder);
  }
  barrier(a_);
}

Checkpointer::~Checkpointer() {
  abandoned_ = true;
  if (writer_.joinable()) writer_.join();
}

bool Checkpointer::is_due(int64_t steps_done, int64_t steps) const {
  if (settings_.every <= 0) return false;
  return steps_done == steps || steps_done % settings_.every == 0;
}

std::optional<SaveReport> Checkpointer::save(int64_t steps_done) {
  std::optional<SaveReport> done = finish();
  job_ = std::make_unique<Job>();
  job_->manifest = manifest_head(a_, steps_done, config_);
  job_->shard = shard_tensors(state_parts(a_), settings_.async, job_->copies);
  job_->rank = a_.mesh.rank();
  job_->report.step = steps_done;
  if (!settings_.async) {
    write(*job_);
    return std::exchange(job_, nullptr)->report;
  }
  sigset_t all, before;  // signals belong to the main thread
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  writer_ = std::thread([this, job = job_.get()] {
    try {
      write(*job);
    } catch (...) {
      error_ = std::current_exception();
    }
    job->copies.clear();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return done;
}

std::optional<SaveReport> Checkpointer::finish() {
  if (writer_.joinable()) writer_.join();
  const auto job = std::exchange(job_, nullptr);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return job ? std::optional(job->report) : std::nullopt;
}

void Checkpointer::write(Job& job) {
  const double start = monotonic_s();
  const auto temporary = checkpoint::temporary_folder(settings_.folder, job.manifest.step);
  job.report.bytes = checkpoint::write_shard(temporary, job.rank, job.shard);
  if (job.rank == 0) {
    job.manifest.tensors =
        checkpoint::join_shards(temporary, job.manifest.world, kPeerLimitS, abandoned_);
    checkpoint::commit(settings_.folder, job.manifest);
    checkpoint::keep_newest(settings_.folder, settings_.keep);
  }
  job.report.write_s = monotonic_s() - start;
}

}  // namespace assay::train
