// Loading a study for a report: its cells, runs, figures and steps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/report/model.h"

namespace assay::report {

struct CellRow {
  std::string slug{}, cell_id{}, recipe_id{}, data_fingerprint{};
  int64_t repeats = 1;
  std::map<std::string, std::string> config{};  ///< dotted keys, values as text
  std::vector<KeyValue> axes{};                 ///< swept keys with their labels
};

/// "a.b.c" -> text: strings as they are, other scalars and lists as JSON.
std::map<std::string, std::string> flatten(const nlohmann::json& config);

std::vector<CellRow> load_cells(const store::Reader& reader, int64_t study_id);

/// Runs of purpose measure and pair, in grid order; with figures over all ranks.
std::vector<RunRow> load_runs(const store::Reader& reader, int64_t study_id, bool samples);

/// Parts of peaks and traffic, limits: what charts need beside the figures.
void load_parts(const store::Reader& reader, int64_t study_id, std::vector<RunRow>& runs);

/// "2026-11-30 17:26:03 UTC"
std::string print_time(int64_t us);

}  // namespace assay::report
