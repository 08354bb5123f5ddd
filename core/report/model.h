// ReportModel: what a report says, built once; every format is a pure function of it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/report/columns.h"
#include "core/report/figure.h"
#include "core/store/reader.h"

namespace assay::report {

/// A configuration key with its value as text, or a name with a text.
using KeyValue = std::pair<std::string, std::string>;

struct StepSample {
  int64_t step = 0;
  std::string kind{};
  double wall_s = 0;  ///< maximum over ranks
  std::optional<double> loss{}, grad_norm{};
  int64_t flags = 0;
  bool used = false;  ///< counts in step_p50_s
};

/// One execution of a cell; its newest attempt.
struct RunRow {
  int64_t run_id = 0;
  std::string slug{}, cell_id{}, recipe_id{}, machine_id{}, purpose{}, state{};
  int64_t slot = 0, attempts = 0;
  std::string reason{}, steady{}, started{}, env_id{};
  std::optional<int64_t> attempt_id{}, exit_code{}, signal{};
  bool timed = true;
  std::vector<std::pair<std::string, Figure>> figures{};  ///< by metric, those that were measured
  std::vector<std::pair<std::string, std::string>> formulas{};  ///< metric -> formula id
  std::vector<StepSample> steps{};                              ///< filled for JSON only
  int64_t excluded_steps = 0, train_steps = 0, evaluations = 0;

  const Figure* figure(const std::string& metric) const;
};

/// A recipe on one machine: all its cells (seeds) and their runs.
struct Row {
  std::string label{};
  bool baseline = false;
  std::string machine_id{};
  std::string state{};              ///< "ok", "OOM", "1/2 ok, FAIL", "queued", ...
  int footnote = 0;                 ///< number of the reason below the table, 0 = none
  std::vector<std::string> keys{};  ///< one per Model::keys
  std::vector<Figure> figures{};    ///< one per Model::columns
  std::vector<int64_t> runs{};
};

struct Model {
  std::string study{}, database{}, created{}, assay{};
  std::string baseline{};
  std::string machine{};  ///< one line; "2 machines" when they differ
  std::vector<Column> columns{};
  std::vector<std::string> keys{};  ///< configuration keys shown
  std::vector<Row> rows{};
  std::vector<RunRow> runs{};
  std::vector<std::string> reasons{};    ///< of failed rows, in the order of their numbers
  std::vector<std::string> footnotes{};  ///< excluded steps, retries, formulas, plugins, ids, ...
  std::vector<KeyValue> environment{};
  std::string sentence{};  ///< measured ranges; no verdict
  std::string verdict{};   ///< that none was asked for
  std::string verdict_command{};
  std::string next{};  ///< next command to type
};

struct ModelRequest {
  std::string study{};                 ///< empty: the newest
  std::string baseline{};              ///< slug; empty: the first recipe
  std::vector<std::string> metrics{};  ///< more columns
  bool all_keys = false;
  bool samples = false;         ///< raw steps of every run
  std::string database_flag{};  ///< " --db F" for the commands that are printed
};

/// Throws Error naming the near misses for an unknown study, baseline or metric.
Model build_model(const store::Reader& reader, const ModelRequest& request);

}  // namespace assay::report
