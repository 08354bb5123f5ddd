// Shapes: every shape up to a size that a schedule takes, for tests of properties.
#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "assay/pipeline.h"

namespace assay {

struct ShapedSchedule {
  PipelineSchedule schedule;
  PipelineShape shape;
};

inline std::string label(const PipelineSchedule& schedule, const PipelineShape& shape) {
  return std::string(schedule.name) + " p=" + std::to_string(shape.ranks) +
         " v=" + std::to_string(shape.chunks) + " m=" + std::to_string(shape.microbatches);
}

/// All schedules, p up to `ranks`, v up to 3, m up to `microbatches`.
inline std::vector<ShapedSchedule> all_shapes(int64_t ranks, int64_t microbatches) {
  std::vector<ShapedSchedule> found;
  for (const PipelineSchedule& schedule : pipeline_schedules()) {
    for (int64_t p = 1; p <= ranks; ++p) {
      for (int64_t v = 1; v <= 3; ++v) {
        for (int64_t m = 1; m <= microbatches; ++m) {
          const PipelineShape shape{p, v, m};
          if (refusal(schedule, shape)) continue;
          found.push_back({schedule, shape});
        }
      }
    }
  }
  return found;
}

/// A list from its CSV row.
inline ActionList row_of(const std::string& row) {
  ActionList list;
  std::istringstream cells(row);
  for (std::string cell; std::getline(cells, cell, ',');) {
    for (const Action& action : parse_cell(cell)) list.push_back(action);
  }
  return list;
}

}  // namespace assay
