// Pipeline schedules at plan time: whether one fits the ranks, microbatches and layers of a cell.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "assay/pipeline.h"

namespace assay::grid {

/// The options of a pipeline in one cell; `layers` 0: not known.
struct PipelineQuestion {
  std::string schedule{}, csv{};
  int64_t ranks = 1, chunks = 0, microbatches = 1;  ///< chunks 0: the schedule's default
  int64_t layers = 0, first_less_layers = 1, last_less_layers = 1;
  bool allow_short = false;
};

/// R-CSV (a file: its rows, its microbatches, dead-locks, with FILE:LINE:COLUMN), R-PPV and R-PPM
/// (a known schedule), R-PPL (more stages than layers). A schedule of another name is not judged.
/// Each file is read once for each shape.
class PipelineCheck {
 public:
  std::optional<PipelineRefusal> refusal(const PipelineQuestion& question);

 private:
  /// Number of stages, or why there is no schedule.
  struct Answer {
    int64_t stages = 0;
    std::optional<PipelineRefusal> refusal{};
  };
  const Answer& of_file(const PipelineQuestion& question);

  std::map<std::tuple<std::string, int64_t, int64_t>, Answer> files_;
};

}  // namespace assay::grid
