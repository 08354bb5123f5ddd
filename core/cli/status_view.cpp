// Loading and printing the state of a study.
#include "core/cli/status_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/units.h"
#include "core/cli/view.h"
#include "core/report/rows.h"

namespace assay::cli {
namespace {

using store::integer;
using store::Reader;
using store::real;
using store::Table;
using store::text;

constexpr const char* kStates[] = {"ok",     "oom",   "fail",    "timeout", "invalid",
                                   "killed", "infra", "running", "queued"};

constexpr const char* kRuns =
    "SELECT r.run_id, s.slug, r.state, r.slot, a.reason, a.last_phase, a.last_step, a.heartbeat_us,"
    " json_extract(c.config_json, '$.train.steps') steps FROM study_cells s JOIN runs r "
    "USING(cell_id)"
    " JOIN cells c USING(cell_id) LEFT JOIN attempts a ON a.run_id=r.run_id AND a.n=(SELECT max(n) "
    "FROM"
    " attempts b WHERE b.run_id=r.run_id) WHERE s.study_id=?1 AND r.state NOT IN('ok','queued')"
    " ORDER BY s.ordinal, r.slot";

RunStatus run_status(const Table& table, size_t i) {
  return {.run_id = *integer(table.at(i, "run_id")),
          .slug = *text(table.at(i, "slug")),
          .state = *text(table.at(i, "state")),
          .reason = text(table.at(i, "reason")).value_or("no reason was recorded"),
          .phase = text(table.at(i, "last_phase")).value_or("start"),
          .slot = *integer(table.at(i, "slot")),
          .step = integer(table.at(i, "last_step")),
          .steps = integer(table.at(i, "steps")),
          .heartbeat_us = integer(table.at(i, "heartbeat_us"))};
}

std::vector<SupervisorStatus> load_supervisors(const Reader& reader, int64_t study_id) {
  const Table rows = reader.query(
      "SELECT pid, pid_start, boot_id, started_us, heartbeat_us FROM supervisors WHERE study_id=?1"
      " AND ended_us IS NULL ORDER BY supervisor_id",
      {study_id});
  std::vector<SupervisorStatus> result;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const int64_t pid = *integer(rows.at(i, "pid"));
    const bool alive = text(rows.at(i, "boot_id")) == boot_id() &&
                       process_start(static_cast<int>(pid)) == integer(rows.at(i, "pid_start"));
    result.push_back({.pid = pid,
                      .started_us = *integer(rows.at(i, "started_us")),
                      .heartbeat_us = *integer(rows.at(i, "heartbeat_us")),
                      .alive = alive});
  }
  return result;
}

std::string counts_text(const StudyStatus& status) {
  std::string line;
  for (const char* state : kStates) {
    const auto found = status.counts.find(state);
    if (found == status.counts.end()) continue;
    line += fmt::format("{}{} {}", line.empty() ? "" : "   ", found->second, state);
  }
  return line.empty() ? "no runs yet" : line;
}

std::string time_left(const StudyStatus& status) {
  if (status.left() == 0) return "";
  if (!status.median_run_s) return "   time left: -";
  return "   about " + print_clock(*status.median_run_s * static_cast<double>(status.left())) +
         " left";
}

std::string supervisor_text(const StudyStatus& status) {
  const int64_t now = now_us();
  std::string lines;
  for (const SupervisorStatus& s : status.supervisors) {
    lines += fmt::format("supervisor pid {}: {}, started {}, last sign {}\n", s.pid,
                         s.alive ? "running" : "dead (no such process)",
                         print_age(s.started_us, now), print_age(s.heartbeat_us, now));
  }
  if (status.left() > 0 && !status.supervised()) {
    lines += fmt::format("no supervisor is at work on {} runs: assay resume {}\n", status.left(),
                         status.study);
  }
  return lines;
}

std::string running_text(const RunStatus& run) {
  const std::string step =
      run.step ? fmt::format("  step {}/{}", *run.step, run.steps.value_or(0)) : "";
  const std::string sign =
      run.heartbeat_us ? "  last sign " + print_age(*run.heartbeat_us, now_us()) : "";
  return fmt::format("  {:>5}  {} r{}  {}{}{}\n", run.run_id, run.slug, run.slot, run.phase, step,
                     sign);
}

std::string bad_text(const RunStatus& run) {
  return fmt::format("  {:>5}  {} r{}  {}: {}\n", run.run_id, run.slug, run.slot,
                     report::state_label(run.state), run.reason);
}

nlohmann::json run_json(const RunStatus& run) {
  return {{"run_id", run.run_id},
          {"cell", run.slug},
          {"slot", run.slot},
          {"state", run.state},
          {"reason", run.reason},
          {"phase", run.phase},
          {"step", run.step ? nlohmann::json(*run.step) : nlohmann::json()}};
}

}  // namespace

int64_t StudyStatus::runs() const {
  int64_t sum = 0;
  for (const auto& [state, count] : counts) sum += count;
  return sum;
}

int64_t StudyStatus::left() const {
  int64_t sum = 0;
  for (const char* state : {"queued", "running"}) {
    const auto found = counts.find(state);
    if (found != counts.end()) sum += found->second;
  }
  return sum;
}

bool StudyStatus::supervised() const {
  return std::any_of(supervisors.begin(), supervisors.end(), [](const auto& s) { return s.alive; });
}

StudyStatus load_status(const Reader& reader, const store::StudyInfo& study) {
  StudyStatus status{.study = study.name, .cells = study.cells};
  const Table counts = reader.query(
      "SELECT r.state, count(*) n FROM study_cells s JOIN runs r USING(cell_id) WHERE s.study_id=?1"
      " GROUP BY r.state",
      {study.study_id});
  for (size_t i = 0; i < counts.rows.size(); ++i) {
    status.counts[*text(counts.at(i, "state"))] = *integer(counts.at(i, "n"));
  }
  const Table rows = reader.query(kRuns, {study.study_id});
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    RunStatus run = run_status(rows, i);
    (run.state == "running" ? status.running : status.bad).push_back(std::move(run));
  }
  status.supervisors = load_supervisors(reader, study.study_id);
  status.median_run_s = real(
      reader
          .query(
              "SELECT median((a.ended_us-a.started_us)/1e6) FROM study_cells s JOIN runs r"
              " USING(cell_id) JOIN attempts a USING(run_id) WHERE s.study_id=?1 AND a.ended_us IS"
              " NOT NULL",
              {study.study_id})
          .rows.at(0)[0]);
  status.skips =
      *integer(reader.query("SELECT count(*) FROM plan_skips WHERE study_id=?1", {study.study_id})
                   .rows.at(0)[0]);
  return status;
}

std::string status_text(const StudyStatus& status, bool failed_only) {
  std::string out;
  if (!failed_only) {
    out = fmt::format("{}: {} runs of {} cells", status.study, status.runs(), status.cells);
    if (status.skips > 0)
      out += fmt::format(" ({} points of the grid became no cell)", status.skips);
    out += "\n  " + counts_text(status) + time_left(status) + "\n" + supervisor_text(status);
    if (!status.running.empty()) out += "running:\n";
    for (const RunStatus& run : status.running) out += running_text(run);
  }
  if (!status.bad.empty()) {
    out += "not ok (read one with: assay log RUN):\n";
    for (const RunStatus& run : status.bad) out += bad_text(run);
  } else if (failed_only) {
    out += fmt::format("{}: no run failed\n", status.study);
  }
  return out;
}

nlohmann::json status_json(const StudyStatus& status) {
  nlohmann::json out = {{"schema_version", 1},
                        {"study", status.study},
                        {"cells", status.cells},
                        {"counts", status.counts},
                        {"supervised", status.supervised()},
                        {"running", nlohmann::json::array()},
                        {"not_ok", nlohmann::json::array()}};
  out["seconds_left"] =
      status.median_run_s && status.left() > 0
          ? nlohmann::json(*status.median_run_s * static_cast<double>(status.left()))
          : nlohmann::json();
  for (const RunStatus& run : status.running) out["running"].push_back(run_json(run));
  for (const RunStatus& run : status.bad) out["not_ok"].push_back(run_json(run));
  return out;
}

}  // namespace assay::cli
