// Building the model: load, choose columns and keys, group, order, word.
#include "core/report/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "assay/error.h"
#include "core/base/nearest.h"
#include "core/report/load.h"
#include "core/report/matrix.h"
#include "core/report/notes.h"
#include "core/report/rows.h"
#include "core/report/verdicts.h"

namespace assay::report {
namespace {

constexpr const char* kDefaultColumns[] = {"tokens_per_s", "step_p50_s", "peak_allocated_bytes",
                                           "final_val_loss"};
/// Shown where some run has more than 0 of it: ranks that talk, a pipeline.
constexpr const char* kColumnsOfSome[] = {"wire_bytes", "virtual_step_s"};

std::string hint(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = did_you_mean(nearest(word, known));
  return near.empty() ? fmt::format("there are: {}", fmt::join(known, ", ")) : near;
}

/// Metrics that runs have, with their units.
std::vector<std::string> known_metrics(const Model& model) {
  std::set<std::string> names;
  for (const Column& column : known_columns()) names.insert(column.name);
  for (const RunRow& run : model.runs) {
    for (const auto& [name, figure] : run.figures) names.insert(name);
  }
  return {names.begin(), names.end()};
}

bool some_run_has(const Model& model, const char* metric) {
  return std::any_of(model.runs.begin(), model.runs.end(), [&](const RunRow& run) {
    const Figure* figure = run.figure(metric);
    return figure && figure->value.value_or(0) > 0;
  });
}

void choose_columns(Model& model, const std::vector<std::string>& more) {
  std::vector<std::string> names(std::begin(kDefaultColumns), std::end(kDefaultColumns));
  for (const char* metric : kColumnsOfSome) {
    if (some_run_has(model, metric)) names.emplace_back(metric);
  }
  const std::vector<std::string> known = known_metrics(model);
  for (const std::string& metric : more) {
    if (std::find(known.begin(), known.end(), metric) == known.end()) {
      throw Error("no run has a metric '" + metric + "'", hint(metric, known));
    }
    if (std::find(names.begin(), names.end(), metric) == names.end()) names.push_back(metric);
  }
  for (const std::string& name : names) model.columns.push_back(column_for(name, ""));
}

void put_baseline_first(Model& model, const std::string& wanted) {
  if (model.rows.empty()) return;
  auto found = model.rows.begin();
  if (!wanted.empty()) {
    found = std::find_if(model.rows.begin(), model.rows.end(),
                         [&](const Row& row) { return row.label == wanted; });
    if (found == model.rows.end()) {
      std::vector<std::string> labels;
      for (const Row& row : model.rows) labels.push_back(row.label);
      throw Error("study '" + model.study + "' has no recipe '" + wanted + "' to be the baseline",
                  hint(wanted, labels));
    }
  }
  found->baseline = true;
  model.baseline = found->label;
  std::rotate(model.rows.begin(), found, std::next(found));
}

/// Footnote numbers follow the order of the rows.
void number_reasons(Model& model) {
  std::vector<std::string> ordered;
  for (Row& row : model.rows) {
    if (row.footnote == 0) continue;
    ordered.push_back(model.reasons[static_cast<size_t>(row.footnote - 1)]);
    row.footnote = static_cast<int>(ordered.size());
  }
  model.reasons = std::move(ordered);
}

}  // namespace

const Figure* RunRow::figure(const std::string& metric) const {
  const auto found = std::find_if(figures.begin(), figures.end(),
                                  [&](const auto& entry) { return entry.first == metric; });
  return found == figures.end() ? nullptr : &found->second;
}

Model build_model(const store::Reader& reader, const ModelRequest& request) {
  const store::StudyInfo study =
      request.study.empty() ? reader.newest_study() : reader.study(request.study);
  Model model{.study = study.name,
              .database = reader.file().string(),
              .created = print_time(study.created_us)};
  model.assay =
      store::text(reader.query("SELECT value FROM meta WHERE key='created_by'").rows.at(0)[0])
          .value_or("");
  const std::vector<CellRow> cells = load_cells(reader, study.study_id);
  model.runs = load_runs(reader, study.study_id, request.samples);
  if (request.samples) load_parts(reader, study.study_id, model.runs);
  for (const CellRow& cell : cells) model.configs[cell.cell_id] = cell.config;
  choose_columns(model, request.metrics);
  model.keys = shown_keys(cells, request.all_keys);
  model.axes = axes_of(cells);
  fill_rows(model, cells);
  model.holes = load_holes(reader, study.study_id, cells, model.axes);
  model.verdicts = load_verdicts(reader, study.study_id);
  put_baseline_first(model, request.baseline);
  number_reasons(model);
  model.machine = machine_line(reader, study.study_id);
  model.environment = load_environment(reader, study.study_id);
  model.footnotes = make_footnotes(reader, study.study_id, model, cells);
  model.sentence = range_sentence(model);
  model.verdict =
      "No verdict was asked for: ranges of unpaired runs do not say which recipe is better.";
  model.verdict_command = "assay compare " + study.name + " --pairs 20" + request.database_flag;
  model.next = "assay report " + study.name + request.database_flag;
  return model;
}

}  // namespace assay::report
