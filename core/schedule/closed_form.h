// Closed forms of the known schedules, and where they hold (recipes 2.9, "Cost").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/schedule/simulate.h"

namespace assay {

struct ClosedForm {
  std::optional<double> makespan{};  ///< nothing where the formula does not hold
  std::string makespan_formula{};
  std::string condition{};             ///< of the makespan; empty: always (with free transfers)
  std::vector<int64_t> peak_chunks{};  ///< per rank; empty where the formula does not hold
  std::string peak_formula{};          ///< or its condition where that does not hold
  int64_t messages = 0;                ///< between ranks, in one step
  std::string messages_formula{};
};

/// Which m the schedule takes: "any", "m >= p", ... (refusal() says it of one shape).
std::string_view microbatches_rule(const PipelineSchedule& schedule);

/// The shape must be one that the schedule takes.
ClosedForm closed_form(const PipelineSchedule& schedule, const PipelineShape& shape,
                       const ChunkTimes& times);

}  // namespace assay
