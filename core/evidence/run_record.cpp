// Queries for runs, their steps and their figures.
#include "core/evidence/run_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/store/quantile.h"

namespace assay::evidence {
namespace {

using store::integer;
using store::real;
using store::Table;
using store::text;
using store::Value;

std::string id_list(std::span<const int64_t> ids) {
  return nlohmann::json(std::vector<int64_t>(ids.begin(), ids.end())).dump();
}

RunRecord record_at(const Table& rows, size_t i) {
  return {.run_id = *integer(rows.at(i, "run_id")),
          .attempt_id = integer(rows.at(i, "attempt_id")).value_or(0),
          .attempts = integer(rows.at(i, "n")).value_or(0),
          .cell_id = *text(rows.at(i, "cell_id")),
          .machine_id = *text(rows.at(i, "machine_id")),
          .env_id = text(rows.at(i, "env_id")).value_or(""),
          .purpose = *text(rows.at(i, "purpose")),
          .state = *text(rows.at(i, "state")),
          .timed = integer(rows.at(i, "timed")).value_or(0) == 1,
          .resumed_step = integer(rows.at(i, "resumed_step")),
          .steady_first = integer(rows.at(i, "steady_first")),
          .steady_last = integer(rows.at(i, "steady_last")),
          .steady_method = text(rows.at(i, "steady_method")).value_or(""),
          .quality = {.started_us = integer(rows.at(i, "started_us")).value_or(0),
                      .ended_us = integer(rows.at(i, "ended_us")).value_or(0)}};
}

void add_figures(const store::Reader& reader, std::map<int64_t, RunRecord>& runs,
                 const std::string& ids) {
  const Table rows = reader.query(
      "SELECT a.run_id, m.name, m.rank, m.value FROM metrics m JOIN attempts a USING(attempt_id)"
      " WHERE a.run_id IN (SELECT value FROM json_each(?1)) AND a.n=(SELECT max(n) FROM attempts b"
      " WHERE b.run_id=a.run_id) AND m.value IS NOT NULL AND (m.rank=-1 OR m.name LIKE 'fact.%')",
      {Value(ids)});
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    RunRecord& run = runs.at(*integer(rows.at(i, "run_id")));
    const std::string name = *text(rows.at(i, "name"));
    const double value = *real(rows.at(i, "value"));
    if (name == "fact.involuntary_switches") {
      run.quality.involuntary_switches = run.quality.involuntary_switches.value_or(0) + value;
    }
    if (*integer(rows.at(i, "rank")) <= 0) run.figures[name] = value;
  }
}

void fill_quality(RunRecord& run) {
  run.quality.steal_share = run.figure("steal_share");
  run.quality.pressure_share = run.figure("cpu_pressure_share");
  run.quality.clock_hz = run.figure("clock_hz");
  run.quality.throttled_share = run.figure("throttled_share");
}

}  // namespace

std::optional<double> RunRecord::figure(const std::string& name) const {
  const auto found = figures.find(name);
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

std::map<int64_t, RunRecord> load_runs(const store::Reader& reader, std::span<const int64_t> ids) {
  const std::string list = id_list(ids);
  const Table rows = reader.query(
      "SELECT r.run_id, r.cell_id, r.machine_id, r.purpose, r.state, a.attempt_id, a.n, a.env_id,"
      " a.timed, a.resumed_step, a.steady_first, a.steady_last, a.steady_method, a.started_us,"
      " a.ended_us FROM runs r LEFT JOIN attempts a ON a.run_id=r.run_id AND a.n=(SELECT max(n)"
      " FROM attempts b WHERE b.run_id=r.run_id) WHERE r.run_id IN (SELECT value FROM"
      " json_each(?1))",
      {Value(list)});
  std::map<int64_t, RunRecord> runs;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    RunRecord run = record_at(rows, i);
    runs.emplace(run.run_id, std::move(run));
  }
  add_figures(reader, runs, list);
  for (auto& [id, run] : runs) fill_quality(run);
  return runs;
}

std::vector<int64_t> ok_runs(const store::Reader& reader, const std::string& cell_id) {
  return reader
      .query(
          "SELECT run_id FROM runs WHERE cell_id=?1 AND state='ok' AND"
          " purpose IN('measure','pair','control') ORDER BY run_id",
          {Value(cell_id)})
      .integers("run_id");
}

StepTimes step_times(const store::Reader& reader, const RunRecord& run, int64_t first_step,
                     const std::string& statistic) {
  const Table rows = reader.query(
      "SELECT max(wall_s) wall_s FROM steps WHERE attempt_id=?1 AND kind='steady' AND step>=?2"
      " GROUP BY step",
      {Value(run.attempt_id), Value(first_step)});
  const std::vector<double> wall_s = rows.reals("wall_s");
  const double q = statistic == "median" ? 0.5 : statistic == "min" ? 0.0 : 0.1;
  return {.statistic = store::quantile(wall_s, q),
          .median = store::quantile(wall_s, 0.5),
          .steps = static_cast<int64_t>(wall_s.size())};
}

BitSeries load_bits(const store::Reader& reader, const RunRecord& run) {
  const Table rows = reader.query(
      "SELECT step, loss, grad_norm, loss_bits, grad_norm_bits FROM steps WHERE attempt_id=?1 AND"
      " rank=(SELECT min(rank) FROM steps WHERE attempt_id=?1) AND kind<>'checkpoint'"
      " ORDER BY kind='eval', step",
      {Value(run.attempt_id)});
  BitSeries series;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    series.steps.push_back({.step = *integer(rows.at(i, "step")),
                            .loss = real(rows.at(i, "loss")),
                            .grad_norm = real(rows.at(i, "grad_norm")),
                            .loss_bits = integer(rows.at(i, "loss_bits")),
                            .grad_norm_bits = integer(rows.at(i, "grad_norm_bits"))});
  }
  series.checksums = reader
                         .query(
                             "SELECT value FROM metrics WHERE attempt_id=?1 AND"
                             " name='fact.parameter_checksum' ORDER BY rank",
                             {Value(run.attempt_id)})
                         .reals("value");
  return series;
}

Curve load_curve(const store::Reader& reader, const RunRecord& run) {
  const Table rows = reader.query(
      "SELECT tokens_total, loss, (end_us - (SELECT min(end_us - CAST(wall_s*1e6 AS INTEGER)) FROM"
      " steps WHERE attempt_id=?1))/1e6 elapsed_s FROM steps WHERE attempt_id=?1 AND"
      " rank=(SELECT min(rank) FROM steps WHERE attempt_id=?1) AND kind IN('warmup','steady') AND"
      " loss IS NOT NULL ORDER BY step",
      {Value(run.attempt_id)});
  Curve curve;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    curve.push_back({.tokens_total = *integer(rows.at(i, "tokens_total")),
                     .elapsed_s = *real(rows.at(i, "elapsed_s")),
                     .loss = *real(rows.at(i, "loss"))});
  }
  return curve;
}

}  // namespace assay::evidence
