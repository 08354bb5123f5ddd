// ReportModel: what a report says, built once; every format is a pure function of it.
#pragma once

#include <cstdint>
#include <map>
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
  bool used = false;         ///< counts in step_p50_s
  int64_t tokens_total = 0;  ///< trained so far, whole job
  double elapsed_s = 0;      ///< since the start of the run's first step
  int64_t end_us = 0;        ///< UTC, of the last rank
};

/// Bytes that the busiest rank sends in a step within one group of ranks ("tp", "dp_shard").
struct GroupBytes {
  std::string group{};
  double wire_bytes = 0;
};

/// One execution of a cell; its newest attempt.
struct RunRow {
  int64_t run_id = 0;
  std::string slug{}, cell_id{}, recipe_id{}, machine_id{}, purpose{}, state{};
  int64_t slot = 0, attempts = 0;
  std::string reason{}, steady{}, started{}, env_id{};
  std::optional<int64_t> attempt_id{}, exit_code{}, signal{}, started_us{}, ended_us{};
  bool timed = true;
  std::vector<std::pair<std::string, Figure>> figures{};  ///< by metric, those that were measured
  std::vector<std::pair<std::string, std::string>> formulas{};  ///< metric -> formula id
  std::vector<StepSample> steps{};                              ///< only if samples were asked for
  int64_t excluded_steps = 0, train_steps = 0, evaluations = 0;
  /// The highest peak of allocated bytes over ranks and phases, split: category -> bytes.
  std::vector<std::pair<std::string, int64_t>> memory{};
  std::vector<GroupBytes> traffic{};
  std::optional<int64_t> limit_bytes{};  ///< of its memory, where one was set

  const Figure* figure(const std::string& metric) const;
};

/// A recipe on one machine: all its cells (seeds) and their runs.
struct Row {
  std::string label{};
  size_t cells = 1;  ///< of the recipe: its seeds
  bool baseline = false;
  std::string machine_id{};
  std::string state{};              ///< "ok", "OOM", "1/2 ok, FAIL", "queued", ...
  int footnote = 0;                 ///< number of the reason below the table, 0 = none
  std::vector<std::string> keys{};  ///< one per Model::keys
  std::vector<Figure> figures{};    ///< one per Model::columns
  std::vector<int64_t> runs{};
  std::vector<std::string> labels{};  ///< one per Model::axes; "" where seeds differ
};

/// A point of the grid that became no cell.
struct Hole {
  std::string slug{}, reason{};
  std::string rule{};                 ///< "exclude", "when", or the id of the refusing rule
  std::vector<std::string> labels{};  ///< one per Model::axes; empty if the slug does not tell
};

/// A paired run: one point of the pair plot.
struct PairPoint {
  int64_t index = 0;
  bool baseline_first = true;
  double change_pct = 0;
  bool discarded = false;
};

/// What evidence said about one metric of one comparison, as it is stored.
struct VerdictRow {
  std::string candidate{}, baseline{}, metric{};
  std::string verdict{};  ///< FASTER, SLOWER, SAME, UNRESOLVED, PARITY, ...
  std::string reason{}, method{}, tier{}, control{};
  Figure change{};                ///< in `unit`, with its interval
  std::string unit{};             ///< "%" of ratios, "nat", "bytes"
  std::optional<double> level{};  ///< of the interval: 0.995
  std::string mde{};              ///< detectable effect as printed; empty: not known
  int64_t used = 0, discarded = 0;
  std::vector<std::string> labels{};  ///< lint and quality labels: shown with every figure of it
  std::vector<PairPoint> pairs{};     ///< in run order; of time verdicts
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
  std::map<std::string, std::map<std::string, std::string>> configs{};  ///< by cell_id, dotted keys
  std::vector<std::string> axes{};  ///< what is swept, without seeds, in the order of the slugs
  std::vector<Hole> holes{};
  std::vector<VerdictRow> verdicts{};  ///< empty: no comparison was asked for
  std::string sentence{};              ///< measured ranges; no verdict
  std::string verdict{};               ///< that none was asked for
  std::string verdict_command{};
  std::string next{};  ///< next command to type
};

struct ModelRequest {
  std::string study{};                 ///< empty: the newest
  std::string baseline{};              ///< slug; empty: the first recipe
  std::vector<std::string> metrics{};  ///< more columns
  bool all_keys = false;
  bool samples = false;         ///< raw steps of every run, memory and traffic in parts
  std::string database_flag{};  ///< " --db F" for the commands that are printed
};

/// Throws Error naming the near misses for an unknown study, baseline or metric.
Model build_model(const store::Reader& reader, const ModelRequest& request);

}  // namespace assay::report
