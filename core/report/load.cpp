// Queries behind a report; nothing is computed here.
#include "core/report/load.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace assay::report {
namespace {

using store::integer;
using store::Reader;
using store::real;
using store::Table;
using store::text;

std::string text_or(const Table& table, size_t row, const char* column) {
  return text(table.at(row, column)).value_or("");
}

int64_t int_or(const Table& table, size_t row, const char* column, int64_t otherwise = 0) {
  return integer(table.at(row, column)).value_or(otherwise);
}

void flatten_into(const std::string& prefix, const nlohmann::json& value,
                  std::map<std::string, std::string>& out) {
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      flatten_into(prefix.empty() ? key : prefix + "." + key, item, out);
    }
  } else {
    out[prefix] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

void load_figures(const Reader& reader, int64_t study_id, std::map<int64_t, RunRow*>& by_attempt) {
  const Table rows = reader.query(
      "SELECT m.attempt_id, m.name, m.value, m.nonfinite, m.unit, m.formula_id FROM study_cells s"
      " JOIN runs r USING(cell_id) JOIN attempts a USING(run_id) JOIN metrics m USING(attempt_id)"
      " WHERE s.study_id=?1 AND m.rank=-1 ORDER BY m.attempt_id, m.name",
      {study_id});
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const auto found = by_attempt.find(int_or(rows, i, "attempt_id"));
    if (found == by_attempt.end()) continue;  // an older attempt
    RunRow& run = *found->second;
    const std::string name = text_or(rows, i, "name");
    const Column column = column_for(name, text_or(rows, i, "unit"));
    const auto value = real(rows.at(i, "value"));
    Figure figure =
        value ? measured(*value, {}, {}, column.scale) : measured(text_or(rows, i, "nonfinite"));
    figure.runs = {run.run_id};
    run.figures.emplace_back(name, std::move(figure));
    run.formulas.emplace_back(name, text_or(rows, i, "formula_id"));
  }
}

void count_steps(const Reader& reader, int64_t study_id, std::map<int64_t, RunRow*>& by_attempt) {
  const Table rows = reader.query(
      "SELECT v.attempt_id, sum(v.kind<>'eval' AND v.kind<>'checkpoint') train,"
      " sum(v.kind='eval') evals, sum(coalesce(v.used, 0)) used FROM study_cells s JOIN v_step v"
      " USING(cell_id) WHERE s.study_id=?1 AND v.rank=0 GROUP BY v.attempt_id",
      {study_id});
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const auto found = by_attempt.find(int_or(rows, i, "attempt_id"));
    if (found == by_attempt.end()) continue;
    RunRow& run = *found->second;
    run.train_steps = int_or(rows, i, "train");
    run.evaluations = int_or(rows, i, "evals");
    run.excluded_steps = run.train_steps - int_or(rows, i, "used");
  }
}

void load_steps(const Reader& reader, int64_t study_id, std::map<int64_t, RunRow*>& by_attempt) {
  const Table rows = reader.query(
      "SELECT v.attempt_id, v.step, v.kind, max(v.wall_s) wall_s, v.loss, v.grad_norm, max(v.flags)"
      " flags, max(coalesce(v.used, 0)) used, v.tokens_total, max(v.end_us) end_us"
      " FROM study_cells s JOIN v_step v USING(cell_id)"
      " WHERE s.study_id=?1 GROUP BY v.attempt_id, v.step, v.kind ORDER BY v.attempt_id, v.step, "
      "v.kind='eval'",
      {study_id});
  double start_s = 0;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const auto found = by_attempt.find(int_or(rows, i, "attempt_id"));
    if (found == by_attempt.end()) continue;
    std::vector<StepSample>& steps = found->second->steps;
    const double wall_s = real(rows.at(i, "wall_s")).value_or(0);
    const double end_s = static_cast<double>(int_or(rows, i, "end_us")) / 1e6;
    if (steps.empty()) start_s = end_s - wall_s;
    steps.push_back({.step = int_or(rows, i, "step"),
                     .kind = text_or(rows, i, "kind"),
                     .wall_s = wall_s,
                     .loss = real(rows.at(i, "loss")),
                     .grad_norm = real(rows.at(i, "grad_norm")),
                     .flags = int_or(rows, i, "flags"),
                     .used = int_or(rows, i, "used") == 1,
                     .tokens_total = int_or(rows, i, "tokens_total"),
                     .elapsed_s = end_s - start_s,
                     .end_us = int_or(rows, i, "end_us")});
  }
}

std::string used_range(const Table& table, size_t row) {
  const auto first = integer(table.at(row, "steady_first"));
  if (!first) return "";
  return fmt::format("{} steps {}-{}", text_or(table, row, "steady_method"), *first,
                     int_or(table, row, "steady_last"));
}

RunRow run_row(const Table& table, size_t i) {
  return {.run_id = int_or(table, i, "run_id"),
          .slug = text_or(table, i, "slug"),
          .cell_id = text_or(table, i, "cell_id"),
          .recipe_id = text_or(table, i, "recipe_id"),
          .machine_id = text_or(table, i, "machine_id"),
          .purpose = text_or(table, i, "purpose"),
          .state = text_or(table, i, "state"),
          .slot = int_or(table, i, "slot"),
          .attempts = int_or(table, i, "attempts"),
          .reason = text_or(table, i, "reason"),
          .steady = used_range(table, i),
          .started = integer(table.at(i, "started_us")) ? print_time(int_or(table, i, "started_us"))
                                                        : std::string(),
          .env_id = text_or(table, i, "env_id"),
          .attempt_id = integer(table.at(i, "attempt_id")),
          .exit_code = integer(table.at(i, "exit_code")),
          .signal = integer(table.at(i, "signal")),
          .started_us = integer(table.at(i, "started_us")),
          .ended_us = integer(table.at(i, "ended_us")),
          .timed = int_or(table, i, "timed", 1) == 1};
}

}  // namespace

std::map<std::string, std::string> flatten(const nlohmann::json& config) {
  std::map<std::string, std::string> result;
  flatten_into("", config, result);
  return result;
}

std::string print_time(int64_t us) {
  const std::chrono::sys_time<std::chrono::seconds> time(std::chrono::seconds(us / 1'000'000));
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", time);
}

std::vector<CellRow> load_cells(const Reader& reader, int64_t study_id) {
  const Table rows = reader.query(
      "SELECT s.slug, s.cell_id, s.repeats, c.recipe_id, c.data_fingerprint, c.config_json"
      " FROM study_cells s JOIN cells c USING(cell_id) WHERE s.study_id=?1 ORDER BY s.ordinal",
      {study_id});
  std::vector<CellRow> cells;
  std::map<std::string, size_t> by_id;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    by_id[text_or(rows, i, "cell_id")] = cells.size();
    cells.push_back({.slug = text_or(rows, i, "slug"),
                     .cell_id = text_or(rows, i, "cell_id"),
                     .recipe_id = text_or(rows, i, "recipe_id"),
                     .data_fingerprint = text_or(rows, i, "data_fingerprint"),
                     .repeats = int_or(rows, i, "repeats"),
                     .config = flatten(nlohmann::json::parse(text_or(rows, i, "config_json")))});
  }
  const Table axes = reader.query(
      "SELECT cell_id, key, label FROM cell_axis WHERE study_id=?1 ORDER BY key", {study_id});
  for (size_t i = 0; i < axes.rows.size(); ++i) {
    cells[by_id.at(text_or(axes, i, "cell_id"))].axes.emplace_back(text_or(axes, i, "key"),
                                                                   text_or(axes, i, "label"));
  }
  return cells;
}

std::vector<RunRow> load_runs(const Reader& reader, int64_t study_id, bool samples) {
  const Table rows = reader.query(
      "SELECT r.run_id, s.slug, r.cell_id, c.recipe_id, r.machine_id, r.purpose, r.state, r.slot,"
      " coalesce(a.n, 0) attempts, a.reason, a.attempt_id, a.exit_code, a.signal, a.timed, "
      "a.env_id,"
      " a.steady_method, a.steady_first, a.steady_last, a.started_us, a.ended_us FROM study_cells s"
      " JOIN cells c ON c.cell_id=s.cell_id JOIN runs r ON r.cell_id=s.cell_id"
      " LEFT JOIN attempts a ON a.run_id=r.run_id AND"
      " a.n=(SELECT max(n) FROM attempts b WHERE b.run_id=r.run_id)"
      " WHERE s.study_id=?1 AND (r.purpose IN('measure','pair') OR (r.purpose='tune' AND"
      " s.repeats=0))"
      " ORDER BY s.ordinal, r.machine_id, r.purpose, r.slot",
      {study_id});
  std::vector<RunRow> runs;
  for (size_t i = 0; i < rows.rows.size(); ++i) runs.push_back(run_row(rows, i));
  std::map<int64_t, RunRow*> by_attempt;
  for (RunRow& run : runs) {
    if (run.attempt_id) by_attempt[*run.attempt_id] = &run;
  }
  load_figures(reader, study_id, by_attempt);
  count_steps(reader, study_id, by_attempt);
  if (samples) load_steps(reader, study_id, by_attempt);
  return runs;
}

}  // namespace assay::report
