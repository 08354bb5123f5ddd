// Checkpointer: when a run saves, and the thread that writes while training goes on.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "assay/api.h"
#include "core/checkpoint/manifest.h"
#include "core/train/assemble.h"

namespace assay::train {

struct CheckpointSettings {
  int64_t every = 0;  ///< steps between saves, 0: none; the last step is saved too
  int64_t keep = 10;  ///< newest checkpoints that stay, 0: all
  bool async = false;
  std::filesystem::path folder{};  ///< of step-* and latest
};

/// `train.checkpoint_every`, `keep`, `checkpoint_async`. Throws Error for a keep of 1: a good copy
/// has to stay while the next one is written.
ASSAY_API CheckpointSettings checkpoint_settings(const nlohmann::json& train,
                                                 std::filesystem::path folder);

/// What one save took, on this rank.
struct SaveReport {
  int64_t step = 0;
  int64_t bytes = 0;   ///< of tensors
  double write_s = 0;  ///< hashing, writing, syncing; rank 0: and waiting for the others
};

/// Saves the state of one rank. Synchronous: the step waits for the disk. Asynchronous: it waits
/// for the copy to the host, and for the save before this one.
class ASSAY_API Checkpointer {
 public:
  /// Collective: rank 0 clears what killed saves have left. `config` goes into the manifest.
  Checkpointer(Assembly& assembly, CheckpointSettings settings, nlohmann::json config);
  ~Checkpointer();  ///< abandons a save that still waits for other ranks
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  bool is_due(int64_t steps_done, int64_t steps) const;
  /// Every rank calls it with the same number. The report of the save that is complete: this one,
  /// or in the background the one before it. Throws InfrastructureError.
  std::optional<SaveReport> save(int64_t steps_done);
  /// Waits for a save in the background.
  std::optional<SaveReport> finish();

 private:
  struct Job;
  void write(Job& job);

  Assembly& a_;
  const CheckpointSettings settings_;
  const nlohmann::json config_;
  std::atomic<bool> abandoned_ = false;
  std::unique_ptr<Job> job_;
  std::thread writer_;
  std::exception_ptr error_;
};

}  // namespace assay::train
