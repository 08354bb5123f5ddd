// CSV: one row per run, written with libcsv; values in the stored unit and full precision.
#include <fmt/format.h>

#include <map>
#include <set>

#include "core/report/csv_field.h"
#include "core/report/formats.h"

namespace assay::report {
namespace {

/// Known columns, then the metrics that only some runs have, by name.
std::vector<Column> all_columns(const Model& model) {
  std::vector<Column> columns(known_columns().begin(), known_columns().end());
  std::set<std::string> others;
  for (const RunRow& run : model.runs) {
    for (const auto& [name, figure] : run.figures) others.insert(name);
  }
  for (const Column& column : columns) others.erase(column.name);
  for (const std::string& name : others) columns.push_back(column_for(name, "1"));
  return columns;
}

std::string value_text(const Figure* figure) {
  if (figure == nullptr || figure->state != FigureState::measured) return "";
  return figure->value ? fmt::format("{}", *figure->value) : figure->nonfinite;
}

std::string number(const std::optional<int64_t>& value) {
  return value ? std::to_string(*value) : std::string();
}

/// The row that a run belongs to: it has the run's configuration values.
std::map<int64_t, const Row*> rows_by_run(const Model& model) {
  std::map<int64_t, const Row*> rows;
  for (const Row& row : model.rows) {
    for (const int64_t run_id : row.runs) rows[run_id] = &row;
  }
  return rows;
}

std::vector<std::string> header(const Model& model, const std::vector<Column>& columns) {
  std::vector<std::string> line = {"study",     "cell",   "cell_id",  "recipe_id", "machine_id",
                                   "run_id",    "slot",   "attempts", "state",     "reason",
                                   "exit_code", "signal", "timed",    "steady"};
  line.insert(line.end(), model.keys.begin(), model.keys.end());
  for (const Column& column : columns) line.push_back(column.csv);
  return line;
}

}  // namespace

std::string csv(const Model& model) {
  const std::vector<Column> columns = all_columns(model);
  const std::map<int64_t, const Row*> rows = rows_by_run(model);
  std::string out = csv_line(header(model, columns));
  for (const RunRow& run : model.runs) {
    std::vector<std::string> line = {model.study,
                                     run.slug,
                                     run.cell_id,
                                     run.recipe_id,
                                     run.machine_id,
                                     std::to_string(run.run_id),
                                     std::to_string(run.slot),
                                     std::to_string(run.attempts),
                                     run.state,
                                     run.reason,
                                     number(run.exit_code),
                                     number(run.signal),
                                     run.timed ? "1" : "0",
                                     run.steady};
    const Row& row = *rows.at(run.run_id);
    line.insert(line.end(), row.keys.begin(), row.keys.end());
    for (const Column& column : columns) line.push_back(value_text(run.figure(column.name)));
    out += csv_line(line);
  }
  return out;
}

}  // namespace assay::report
