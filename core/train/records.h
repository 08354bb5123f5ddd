// Records: the spool rows of a run, in the columns of the database (docs/metrics.md).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/intercept/host_allocator.h"
#include "core/intercept/op_profile.h"
#include "core/train/checkpointer.h"
#include "core/train/reporter.h"
#include "core/train/trainer.h"

namespace assay::train {

/// Bits of steps.flags.
enum StepFlag : int { kLossNotFinite = 16 };

class Records {
 public:
  /// `first`: number of the first step; above 0 after a resume.
  Records(Reporter& reporter, Assembly& assembly, int64_t first);

  void step(int64_t number, const StepResult& result);
  void trace(int64_t number);  ///< digests of the step, where the recipe asks for them
  void evaluation(int64_t number, const EvalResult& result);
  /// A step that was saved: how long training stood still, on this rank.
  void checkpoint(int64_t number, double stall_s);
  /// A save that is complete.
  void checkpoint_written(const SaveReport& report);
  /// Ends a stretch of `phase`: the peak since the last call counts for it. Rows come in finish().
  void memory(const std::string& phase);
  /// Saved-activation bytes that the ledger counted; they are a part of phase `step`.
  void activations(int64_t bytes);
  /// Operator calls of one step that took `step_s`: their number, and the slowest by name.
  void operators(const std::map<std::string, intercept::OpTotal>& totals, double step_s);
  void metric(const std::string& name, double value, const char* unit, const char* formula);
  /// Collectives, counters, checksum of the weights.
  void finish(int64_t steps);

 private:
  void sample(const char* name, int64_t step, double value);
  void memory_row(const std::string& phase, const intercept::HostMemory& peak);
  void categories(const std::string& phase, int64_t peak);

  Reporter& reporter_;
  Assembly& a_;
  const int64_t first_;
  int64_t tokens_total_;
  int64_t activation_bytes_ = 0;
  std::optional<int64_t> operations_{};  ///< operator calls of one step
  std::map<std::string, intercept::HostMemory> peaks_;
};

}  // namespace assay::train
