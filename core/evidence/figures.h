// The figures of one run, each with unit and formula id. docs/metrics.md defines them.
#pragma once

#include <optional>
#include <vector>

#include "core/evidence/attempt.h"
#include "core/evidence/steady.h"

namespace assay::evidence {

/// Steady steps of an attempt in step numbers, and the used ones among them (kind `steady`).
struct UsedSteps {
  std::optional<Steady> steady{};
  int64_t first_step = 0, last_step = 0;  ///< step numbers, inclusive
  std::vector<double> wall_s{};           ///< empty: no figure in seconds
};

UsedSteps used_steps(const Attempt& attempt);

/// step_p10_s, step_p50_s, step_p90_s, tokens_per_s, ..._device, ..._e2e, startup_s, first_step_s.
std::vector<store::Metric> time_figures(const Attempt& attempt, const UsedSteps& used);
/// Per-step means over used steps: data_wait_s, comm_exposed_s, forward_s, backward_s, optimizer_s.
std::vector<store::Metric> breakdown_figures(const store::Store& store, const Attempt& attempt,
                                             const UsedSteps& used);
/// virtual_step_s of a pipeline: emulated under thread-CPU time, so untimed attempts have it too.
std::vector<store::Metric> virtual_figures(const store::Store& store, const Attempt& attempt);
/// peak_*_bytes and what workers report by rank, as the maximum over ranks; prediction_error.
std::vector<store::Metric> memory_figures(const store::Store& store, const Attempt& attempt);
/// wire_bytes, payload_bytes and collectives per step and rank, without phase `control`.
std::vector<store::Metric> communication_figures(const store::Store& store, const Attempt& attempt);
/// final_val_loss with the count of evaluations in it, bits_per_byte.
std::vector<store::Metric> loss_figures(const store::Store& store, const Attempt& attempt);

}  // namespace assay::evidence
