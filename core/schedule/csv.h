// Schedules as files in PyTorch's notation: row r is rank r, cells are actions, empty cells idle.
#pragma once

#include <filesystem>
#include <string>

#include "assay/pipeline.h"
#include "core/base/diagnostic.h"

namespace assay {

/// A file that was read, and every problem with it, placed FILE:LINE:COLUMN (R-CSV).
struct ScheduleReading {
  ScheduleFile file;
  std::vector<Diagnostic> problems;
};

/// `ranks` and `microbatches`: what the schedule must be for; 0: whatever it says itself.
ScheduleReading parse_schedule_csv(const std::string& text, const std::string& file,
                                   int64_t ranks = 0, int64_t microbatches = 0);

}  // namespace assay
