// History: every stored run of one configuration, one series per machine, with its changes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/report/change_points.h"
#include "core/report/columns.h"
#include "core/store/reader.h"

namespace assay::report {

struct HistoryPoint {
  int64_t run_id = 0, started_us = 0;
  std::string study{};     ///< of the newest study with its cell
  std::string binaries{};  ///< first digits of a hash over the cell's binaries
  double value = 0;        ///< in the stored unit
};

struct HistorySeries {
  std::string machine_id{};
  std::vector<HistoryPoint> points{};  ///< by start
  std::vector<ChangePoint> changes{};
};

struct History {
  std::string label{};      ///< slug of the newest cell
  std::string config_id{};  ///< what the runs have in common: everything but the binaries
  Column column{};
  std::vector<HistorySeries> series{};
};

/// `cell`: a slug (of the newest study that has it), STUDY/SLUG, or the first 6 or more digits of a
/// cell id or config id. Runs of purpose measure and pair that ended well and started at
/// `since_us` or later. Throws Error with the near misses for an unknown cell or metric.
History load_history(const store::Reader& reader, const std::string& cell,
                     const std::string& metric, int64_t since_us = 0);

/// Terminal text: one table per machine, changes between its lines.
std::string history_text(const History& history);
nlohmann::json history_json(const History& history);

}  // namespace assay::report
