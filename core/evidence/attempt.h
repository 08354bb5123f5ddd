// Attempt: what the database holds about one attempt, as evidence needs it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/store/store.h"

namespace assay::evidence {

/// One train step, over all ranks.
struct TrainStep {
  int64_t step = 0;
  bool steady = false;   ///< kind `steady`; else `warmup`
  double wall_s = 0;     ///< maximum over ranks
  int64_t tokens = 0;    ///< global
  int64_t start_us = 0;  ///< earliest of the ranks
  int64_t end_us = 0;    ///< latest of the ranks
};

struct Attempt {
  int64_t attempt_id = 0;
  nlohmann::json config;
  bool has_timing = true;         ///< timed and from step 0
  int64_t first_step_offset = 0;  ///< steps skipped by a resume
  int64_t started_us = 0;
  std::optional<int64_t> predicted_bytes;
  std::optional<double> predicted_step_s;
  std::vector<TrainStep> steps;  ///< kinds warmup and steady, by step

  int64_t world_size() const;       ///< product of the mesh without ep
  int64_t tokens_per_step() const;  ///< global_batch * seq_len, each token once
  int64_t planned_steps() const;
  int64_t warmup_steps() const;  ///< excluded from timing; not the learning rate's warm-up
};

Attempt load_attempt(const store::Store& store, int64_t attempt_id);

}  // namespace assay::evidence
