// Splitting recorded steps, and medians over them.
#include "core/evidence/explain.h"

#include <algorithm>
#include <numeric>

#include "assay/error.h"
#include "core/store/quantile.h"

namespace assay::evidence {
namespace {

using store::integer;
using store::real;
using store::Table;
using store::text;
using store::Value;

CommShares comm_shares(const store::Reader& reader, int64_t attempt_id) {
  const Table rows = reader.query(
      "SELECT phase, sum(exposed_s) s FROM collectives WHERE attempt_id=?1 AND phase IN('forward',"
      "'backward','optimizer') GROUP BY phase",
      {Value(attempt_id)});
  CommShares shares;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const std::string phase = *text(rows.at(i, "phase"));
    double& share = phase == "forward"    ? shares.forward
                    : phase == "backward" ? shares.backward
                                          : shares.optimizer;
    share = real(rows.at(i, "s")).value_or(0);
  }
  const double total = shares.forward + shares.backward + shares.optimizer;
  if (total <= 0) return {};
  return {shares.forward / total, shares.backward / total, shares.optimizer / total};
}

std::vector<GroupTraffic> traffic_of(const store::Reader& reader, int64_t attempt_id) {
  const Table rows = reader.query(
      "SELECT grp, op, phase, max(n) n, max(payload) payload, max(exposed) exposed FROM (SELECT"
      " grp, op, phase, rank, sum(1.0*count/steps) n, sum(1.0*payload_bytes/steps) payload,"
      " sum(exposed_s/steps) exposed FROM collectives WHERE attempt_id=?1 AND steps>0 AND phase IN"
      "('forward','backward','optimizer') GROUP BY grp, op, phase, rank) GROUP BY grp, op, phase"
      " ORDER BY grp, op, phase",
      {Value(attempt_id)});
  std::vector<GroupTraffic> traffic;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    traffic.push_back({.group = *text(rows.at(i, "grp")),
                       .op = *text(rows.at(i, "op")),
                       .phase = *text(rows.at(i, "phase")),
                       .calls = *real(rows.at(i, "n")),
                       .payload_bytes = *real(rows.at(i, "payload")),
                       .exposed_s = real(rows.at(i, "exposed"))});
  }
  return traffic;
}

constexpr const char* kOutside = "outside operators";

/// Of one run, by name; what the step took beyond them is "outside operators".
std::map<std::string, OperatorTime> operators_of(const store::Reader& reader, int64_t attempt_id) {
  const Table rows = reader.query(
      "SELECT substr(s.name, 6) name, s.value self_s, c.value calls, w.value step_s FROM metrics s"
      " JOIN metrics c ON c.attempt_id=s.attempt_id AND c.rank=s.rank AND c.name='op_calls.' || "
      "substr(s.name, 6)"
      " JOIN metrics w ON w.attempt_id=s.attempt_id AND w.rank=s.rank AND w.name='op_step_s'"
      " WHERE s.attempt_id=?1 AND s.name GLOB 'op_s.*' AND s.rank=(SELECT min(rank) FROM metrics"
      " WHERE attempt_id=?1 AND name='op_step_s' AND rank>=0)",
      {Value(attempt_id)});
  std::map<std::string, OperatorTime> operators;
  double inside = 0;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const double self_s = *real(rows.at(i, "self_s"));
    operators[*text(rows.at(i, "name"))] = {.calls = *real(rows.at(i, "calls")), .self_s = self_s};
    inside += self_s;
  }
  if (!operators.empty()) operators[kOutside].self_s = *real(rows.at(0, "step_s")) - inside;
  return operators;
}

double median(std::vector<double> values) { return *store::quantile(std::move(values), 0.5); }

/// A part that some step lacks is a part of the rest, in every step.
void fold_partial(std::vector<StepSplit>& steps) {
  for (const Part part : kParts) {
    const bool whole = std::all_of(steps.begin(), steps.end(),
                                   [&](const StepSplit& s) { return s.parts.contains(part); });
    if (whole) continue;
    for (StepSplit& step : steps) {
      const auto found = step.parts.find(part);
      if (found == step.parts.end()) continue;
      step.parts[Part::rest] += found->second;
      step.parts.erase(found);
    }
  }
}

/// An operator that a run does not name is among its others.
std::map<std::string, OperatorTime> operator_medians(
    const std::vector<std::map<std::string, OperatorTime>>& runs) {
  std::map<std::string, std::vector<double>> calls, self_s;
  for (const auto& run : runs) {
    for (const auto& [name, time] : run) {
      calls[name].push_back(time.calls);
      self_s[name].push_back(time.self_s);
    }
  }
  std::map<std::string, OperatorTime> medians;
  for (const auto& [name, values] : self_s) {
    medians[name] = {.calls = median(calls[name]), .self_s = median(values)};
  }
  return medians;
}

std::map<Part, double> part_medians(const std::vector<StepSplit>& steps) {
  std::map<Part, double> medians;
  for (const auto& [part, unused] : steps.front().parts) {
    std::vector<double> values;
    for (const StepSplit& step : steps) values.push_back(step.parts.at(part));
    medians[part] = median(std::move(values));
  }
  return medians;
}

}  // namespace

const char* name_of(Part part) {
  switch (part) {
    case Part::data_wait:
      return "data wait";
    case Part::forward:
      return "forward";
    case Part::backward:
      return "backward";
    case Part::optimizer:
      return "optimizer";
    case Part::comm:
      return "exposed comm.";
    case Part::rest:
      return "rest";
  }
  return "";
}

StepSplit split_step(double wall_s, const std::map<Part, double>& recorded,
                     const CommShares& shares) {
  StepSplit split{.wall_s = wall_s, .parts = recorded};
  const auto comm = recorded.find(Part::comm);
  double inside = 0;  // exposed communication that could be taken out of a recorded part
  if (comm != recorded.end()) {
    for (const auto& [part, share] :
         {std::pair(Part::forward, shares.forward), std::pair(Part::backward, shares.backward),
          std::pair(Part::optimizer, shares.optimizer)}) {
      const auto found = split.parts.find(part);
      if (found == split.parts.end()) continue;
      found->second -= share * comm->second;
      inside += share * comm->second;
    }
    split.parts[Part::comm] = inside;
  }
  const double known = std::accumulate(split.parts.begin(), split.parts.end(), 0.0,
                                       [](double sum, const auto& p) { return sum + p.second; });
  split.parts[Part::rest] = wall_s - known;
  return split;
}

double Breakdown::parts_s() const {
  return std::accumulate(parts.begin(), parts.end(), 0.0,
                         [](double sum, const auto& p) { return sum + p.second; });
}

std::vector<StepSplit> used_splits(const store::Reader& reader, const RunRecord& run) {
  if (!run.has_timing()) return {};
  const CommShares shares = comm_shares(reader, run.attempt_id);
  const Table rows = reader.query(std::string("SELECT * FROM ") + kStepsWithParts +
                                      " WHERE attempt_id=?1 AND kind='steady' AND step BETWEEN ?2"
                                      " AND ?3 ORDER BY step, wall_s DESC, rank",
                                  {Value(run.attempt_id), Value(*run.steady_first),
                                   Value(run.steady_last.value_or(INT64_MAX))});
  std::vector<StepSplit> splits;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const int64_t step = *integer(rows.at(i, "step"));
    if (!splits.empty() && splits.back().step == step) continue;  // a faster rank
    std::map<Part, double> recorded;
    for (const auto& [part, column] :
         {std::pair(Part::data_wait, "data_wait_s"), std::pair(Part::comm, "comm_exposed_s"),
          std::pair(Part::forward, "forward_s"), std::pair(Part::backward, "backward_s"),
          std::pair(Part::optimizer, "optimizer_s")}) {
      if (const auto value = real(rows.at(i, column))) recorded[part] = *value;
    }
    splits.push_back(split_step(*real(rows.at(i, "wall_s")), recorded, shares));
    splits.back().step = step;
    splits.back().rank = *integer(rows.at(i, "rank"));
  }
  return splits;
}

Breakdown break_down(const store::Reader& reader, std::span<const RunRecord> runs) {
  Breakdown result;
  std::vector<StepSplit> steps;
  std::vector<std::map<std::string, OperatorTime>> operators;
  for (const RunRecord& run : runs) {
    const auto more = used_splits(reader, run);
    if (more.empty()) continue;
    operators.push_back(operators_of(reader, run.attempt_id));
    if (result.runs.empty()) result.traffic = traffic_of(reader, run.attempt_id);
    result.runs.push_back(run.run_id);
    steps.insert(steps.end(), more.begin(), more.end());
  }
  if (steps.empty()) {
    throw Error("no run has a timed step past its start",
                "a run that ended well, with run.timed: true, is needed");
  }
  fold_partial(steps);
  std::vector<double> wall_s;
  for (const StepSplit& step : steps) wall_s.push_back(step.wall_s);
  result.steps = static_cast<int64_t>(steps.size());
  result.wall_s = median(std::move(wall_s));
  result.parts = part_medians(steps);
  result.operators = operator_medians(operators);
  return result;
}

}  // namespace assay::evidence
