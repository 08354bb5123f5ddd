// Figures in seconds and per second: quantiles of used steps, throughput, start-up, breakdown.
#include <algorithm>

#include "core/evidence/figures.h"
#include "core/store/quantile.h"

namespace assay::evidence {
namespace {

using store::Metric;
using store::quantile;

constexpr double kMicro = 1e-6;

Metric seconds(const char* name, std::optional<double> value, const char* formula) {
  return {.name = name, .value = value, .unit = "s", .formula_id = formula};
}

Metric rate(const char* name, std::optional<double> value, const char* formula) {
  return {.name = name, .value = value, .unit = "1/s", .formula_id = formula};
}

std::optional<double> per_second(int64_t tokens, std::optional<double> wall_s) {
  if (!wall_s || *wall_s <= 0) return std::nullopt;
  return static_cast<double>(tokens) / *wall_s;
}

/// All trained tokens over the time from the first step's start to the last step's end.
std::optional<double> end_to_end(const Attempt& attempt) {
  int64_t tokens = 0, start_us = attempt.steps.front().start_us, end_us = 0;
  for (const TrainStep& step : attempt.steps) {
    tokens += step.tokens;
    start_us = std::min(start_us, step.start_us);
    end_us = std::max(end_us, step.end_us);
  }
  return per_second(tokens, static_cast<double>(end_us - start_us) * kMicro);
}

/// Mean over used steps of the per-step maximum over ranks, so that parts of a step add up.
std::optional<double> mean_of(const store::Table& per_step) {
  const std::vector<double> values = per_step.reals("value");
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

UsedSteps used_steps(const Attempt& attempt) {
  UsedSteps used;
  if (!attempt.has_timing) return used;
  std::vector<double> wall_s;
  for (const TrainStep& step : attempt.steps) wall_s.push_back(step.wall_s);
  used.steady = find_steady(wall_s, attempt.warmup_steps());
  if (!used.steady) return used;
  used.first_step = attempt.steps[static_cast<size_t>(used.steady->first - 1)].step;
  used.last_step = attempt.steps[static_cast<size_t>(used.steady->last - 1)].step;
  for (const TrainStep& step : attempt.steps) {
    if (step.steady && step.step >= used.first_step) used.wall_s.push_back(step.wall_s);
  }
  return used;
}

std::vector<Metric> time_figures(const Attempt& attempt, const UsedSteps& used) {
  if (!attempt.has_timing || attempt.steps.empty()) return {};
  const TrainStep& first = attempt.steps.front();
  const auto p50 = quantile(used.wall_s, 0.5);
  const auto tokens_per_s = per_second(attempt.tokens_per_step(), p50);
  const auto world = static_cast<double>(attempt.world_size());
  return {seconds("step_p10_s", quantile(used.wall_s, 0.1), "step.q7.v1"),
          seconds("step_p50_s", p50, "step.q7.v1"),
          seconds("step_p90_s", quantile(used.wall_s, 0.9), "step.q7.v1"),
          {.name = "used_steps",
           .value = static_cast<double>(used.wall_s.size()),
           .unit = "1",
           .formula_id = "steady_v1"},
          rate("tokens_per_s", tokens_per_s, "tps.p50.v1"),
          rate("tokens_per_s_device",
               tokens_per_s ? std::optional(*tokens_per_s / world) : std::nullopt, "tps.p50.v1"),
          rate("tokens_per_s_e2e", end_to_end(attempt), "tps.e2e.v1"),
          seconds("startup_s", static_cast<double>(first.start_us - attempt.started_us) * kMicro,
                  "start.v1"),
          seconds("first_step_s", first.wall_s, "start.v1")};
}

std::vector<Metric> breakdown_figures(const store::Store& store, const Attempt& attempt,
                                      const UsedSteps& used) {
  std::vector<Metric> figures;
  if (used.wall_s.empty()) return figures;
  const auto add = [&](const char* name, const char* formula, const std::string& sql) {
    const store::Table rows =
        store.query(sql, {attempt.attempt_id, used.first_step, used.last_step, std::string(name)});
    figures.push_back(
        {.name = name, .value = mean_of(rows), .unit = "s/step", .formula_id = formula});
  };
  const std::string columns =
      "SELECT max(CASE ?4 WHEN 'data_wait_s' THEN data_wait_s ELSE comm_exposed_s END) value"
      " FROM steps WHERE attempt_id=?1 AND kind='steady' AND step BETWEEN ?2 AND ?3 GROUP BY step";
  const std::string series =
      "SELECT max(s.value) value FROM samples s JOIN steps t USING(attempt_id, rank, step)"
      " WHERE attempt_id=?1 AND t.kind='steady' AND step BETWEEN ?2 AND ?3 AND s.name=?4 GROUP BY "
      "step";
  add("data_wait_s", "wait.v1", columns);
  add("comm_exposed_s", "comm.v1", columns);
  for (const char* name : {"forward_s", "backward_s", "optimizer_s"}) add(name, "time.v1", series);
  return figures;
}

std::vector<Metric> virtual_figures(const store::Store& store, const Attempt& attempt) {
  const store::Table rows = store.query(
      "SELECT max(s.value) value FROM samples s JOIN steps t USING(attempt_id, rank, step)"
      " WHERE attempt_id=?1 AND t.kind='steady' AND s.name='virtual_step_s' GROUP BY step",
      {attempt.attempt_id});
  return {seconds("virtual_step_s", quantile(rows.reals("value"), 0.5), "virtual.v1")};
}

}  // namespace assay::evidence
