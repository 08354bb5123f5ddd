// Sentence, footnotes and environment of a report.
#include "core/report/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/base/units.h"
#include "core/evidence/selftest.h"
#include "core/report/rows.h"

namespace assay::report {
namespace {

using store::integer;
using store::Reader;
using store::real;
using store::Table;
using store::text;

constexpr size_t kShortHash = 12;
constexpr size_t kMostNames = 12;

/// "tokens/s from 10 200 (a) to 12 396 (b)"; empty without a figure.
std::string range_of(const Model& model, size_t column) {
  const Row *least = nullptr, *most = nullptr;
  for (const Row& row : model.rows) {
    if (!row.figures[column].value) continue;
    if (!least || *row.figures[column].value < *least->figures[column].value) least = &row;
    if (!most || *row.figures[column].value > *most->figures[column].value) most = &row;
  }
  if (!least) return "";
  const Column& c = model.columns[column];
  const std::string unit = c.unit.empty() ? "" : " " + c.unit;
  const Figure &low = least->figures[column], &high = most->figures[column];
  if (least == most || low.display == high.display) {
    return fmt::format("{} {}{}", c.title, low.display, unit);
  }
  return fmt::format("{} from {}{} ({}) to {}{} ({})", c.title, low.display, unit, least->label,
                     high.display, unit, most->label);
}

std::string list(std::vector<std::string> names) {
  const size_t hidden = names.size() > kMostNames ? names.size() - kMostNames : 0;
  if (hidden > 0) names.resize(kMostNames);
  std::string all = fmt::format("{}", fmt::join(names, ", "));
  return hidden > 0 ? fmt::format("{} and {} more", all, hidden) : all;
}

/// How many seeds the recipes have, where it is more than one.
std::string note_cells(const Model& model) {
  std::set<size_t> counts;
  std::vector<std::string> parts;
  for (const Row& row : model.rows) {
    counts.insert(row.cells);
    parts.push_back(fmt::format("{} {}", row.label, row.cells));
  }
  if (counts.empty() || *counts.rbegin() == 1) return "";
  if (counts.size() == 1) return fmt::format("cells (seeds) of each recipe: {}", *counts.begin());
  return fmt::format("cells (seeds) of the recipes: {}", list(parts));
}

std::string note_steps(const Model& model) {
  std::set<std::string> ranges;
  std::vector<std::string> unsteady;
  int64_t excluded = 0, evaluations = 0, train = 0;
  for (const RunRow& run : model.runs) {
    if (run.state != "ok") continue;
    excluded += run.excluded_steps;
    evaluations += run.evaluations;
    train += run.train_steps;
    if (!run.steady.empty()) ranges.insert(run.steady);
    const std::string_view label =
        std::string_view(run.steady).substr(0, run.steady.find(" steps "));
    if (label.find(' ') == std::string_view::npos) continue;
    unsteady.push_back(fmt::format("{} ({})", run.run_id, label.substr(label.find(' ') + 1)));
  }
  if (train == 0) return "";
  std::string note = fmt::format("used {} of {} train steps ({} warm-up or not yet steady",
                                 train - excluded, train, excluded);
  note += fmt::format(", {} evaluations apart)", evaluations);
  if (!ranges.empty()) note += "; " + list({ranges.begin(), ranges.end()});
  if (!unsteady.empty()) note += fmt::format("; not steady: runs {}", list(unsteady));
  return note;
}

std::string note_retries(const Model& model) {
  std::vector<std::string> retried;
  for (const RunRow& run : model.runs) {
    if (run.attempts > 1)
      retried.push_back(fmt::format("{} ({} attempts)", run.run_id, run.attempts));
  }
  return retried.empty()
             ? ""
             : fmt::format("more than one attempt, the newest counts: runs {}", list(retried));
}

std::string note_statistics(const Model& model) {
  std::vector<std::string> parts;
  for (const Column& column : model.columns) {
    std::string formula;
    for (const RunRow& run : model.runs) {
      for (const auto& [metric, id] : run.formulas) {
        if (metric == column.name && formula.empty()) formula = ", " + id;
      }
    }
    parts.push_back(
        fmt::format("{}: {} over runs{}", column.title, statistic_name(column.statistic), formula));
  }
  return fmt::format("{}; in brackets the range over runs", fmt::join(parts, "; "));
}

std::string note_untimed(const Model& model) {
  std::vector<std::string> ids;
  for (const RunRow& run : model.runs) {
    if (!run.timed && run.state == "ok") ids.push_back(std::to_string(run.run_id));
  }
  return ids.empty() ? "" : fmt::format("untimed, without figures in seconds: runs {}", list(ids));
}

std::string note_virtual(const Model& model) {
  const bool shown = std::any_of(model.runs.begin(), model.runs.end(), [](const RunRow& run) {
    return run.figure("virtual_step_s") != nullptr;
  });
  if (!shown) return "";
  return "virtual step time is emulated: the makespan of the pipeline schedule under thread-CPU "
         "time, as if every rank had a core of its own; no wall time, and not measured (-) without "
         "a pipeline";
}

/// Cells of which some run has 1 as `figure`.
std::string cells_with(const Model& model, const char* figure) {
  std::set<std::string> cells;
  for (const RunRow& run : model.runs) {
    const Figure* found = run.figure(figure);
    if (run.state == "ok" && found && found->value == 1) cells.insert(run.slug);
  }
  return list({cells.begin(), cells.end()});
}

std::string note_numerics(const Model& model) {
  const std::string cells = cells_with(model, "fact.numerics_only");
  if (cells.empty()) return "";
  return "numerics only (emulated arithmetic, its speed says nothing): " + cells;
}

std::string note_forced(const Model& model) {
  const std::string cells = cells_with(model, "fact.force_balance");
  if (cells.empty()) return "";
  return "experts by round robin (force_balance, its loss says nothing): " + cells;
}

std::string note_data(const std::vector<CellRow>& cells) {
  std::set<std::string> prints;
  for (const CellRow& cell : cells) prints.insert(cell.data_fingerprint.substr(0, kShortHash));
  if (prints.size() < 2) return "";
  return fmt::format("the data differs: fingerprints {}", fmt::join(prints, ", "));
}

std::string note_plugins(const Reader& reader, int64_t study_id) {
  const Table rows = reader.query(
      "SELECT DISTINCT p.kind, p.name, p.version, p.sha256 FROM study_cells s JOIN runs r"
      " USING(cell_id) JOIN attempts a USING(run_id) JOIN attempt_plugins t USING(attempt_id) JOIN"
      " plugins p USING(plugin_id) WHERE s.study_id=?1 ORDER BY p.kind, p.name, p.sha256",
      {study_id});
  std::vector<std::string> names;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    names.push_back(fmt::format("{}/{} {} {}", *text(rows.at(i, "kind")), *text(rows.at(i, "name")),
                                *text(rows.at(i, "version")),
                                text(rows.at(i, "sha256"))->substr(0, kShortHash)));
  }
  return names.empty() ? "" : fmt::format("binaries: {}", fmt::join(names, ", "));
}

std::string note_skips(const Reader& reader, int64_t study_id) {
  const Table rows = reader.query(
      "SELECT coalesce(rule_id, rule) id, count(*) n FROM plan_skips WHERE study_id=?1 GROUP BY id"
      " ORDER BY n DESC, id",
      {study_id});
  std::vector<std::string> parts;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    parts.push_back(fmt::format("{} {}", *integer(rows.at(i, "n")), *text(rows.at(i, "id"))));
  }
  return parts.empty() ? ""
                       : fmt::format("points of the grid that became no cell: {}", list(parts));
}

std::string note_runs(const Model& model) {
  std::vector<std::string> parts;
  for (const Row& row : model.rows) {
    if (!row.runs.empty())
      parts.push_back(fmt::format("{} {}", row.label, fmt::join(row.runs, " ")));
  }
  return parts.empty() ? "" : fmt::format("run ids: {}", list(parts));
}

/// Values that trials chose.
std::string note_tuning(const Reader& reader, int64_t study_id) {
  const Table rows = reader.query(
      "SELECT t.arm, j.key, j.value, min(t.idx) idx, (SELECT max(idx) FROM trials m WHERE"
      " m.study_id=t.study_id AND m.arm=t.arm) last, (SELECT count(*) FROM trials m WHERE"
      " m.study_id=t.study_id AND m.arm=t.arm) n, max(json_extract(c.config_json,"
      " '$.train.steps')) steps FROM trials t, json_each(t.value_json) j JOIN runs r USING(run_id)"
      " JOIN cells c USING(cell_id) WHERE t.study_id=?1 AND t.chosen GROUP BY t.arm, j.key"
      " ORDER BY t.arm",
      {study_id});
  std::vector<std::string> parts;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const int64_t idx = *integer(rows.at(i, "idx"));
    const bool edge = idx == 0 || idx == *integer(rows.at(i, "last"));
    parts.push_back(
        fmt::format("{} {} {} (best of {} trials of {} steps{})", *text(rows.at(i, "arm")),
                    *text(rows.at(i, "key")), *real(rows.at(i, "value")), *integer(rows.at(i, "n")),
                    *integer(rows.at(i, "steps")), edge ? ", at the end of its list" : ""));
  }
  return parts.empty() ? "" : fmt::format("tuned: {}", list(parts));
}

/// False verdicts of the machines of the study, where they were measured.
std::vector<std::string> notes_selftest(const Reader& reader, int64_t study_id) {
  const Table machines = reader.query(
      "SELECT DISTINCT r.machine_id FROM study_cells s JOIN runs r USING(cell_id) WHERE"
      " s.study_id=?1 ORDER BY 1",
      {study_id});
  const auto stored = evidence::stored_selftests(reader);
  std::vector<std::string> notes;
  for (size_t i = 0; i < machines.rows.size(); ++i) {
    std::string note = evidence::selftest_note(stored, *text(machines.at(i, "machine_id")));
    if (!note.empty()) notes.push_back(std::move(note));
  }
  return notes;
}

constexpr const char* kEnvironments =
    "SELECT DISTINCT e.machine_id, e.host, e.cpu_model, e.cpu_count, e.ram_bytes, e.device_model,"
    " e.device_count, e.driver, e.clock_policy, e.libtorch, e.compiler, e.build_type, e.sanitizer"
    " FROM study_cells s JOIN runs r USING(cell_id) JOIN attempts a USING(run_id) JOIN env e"
    " USING(env_id) WHERE s.study_id=?1 ORDER BY e.machine_id, e.env_id";

std::string shown(const Table& table, size_t row, const std::string& column) {
  if (const auto words = text(table.at(row, column))) return *words;
  const auto number = integer(table.at(row, column));
  if (!number) return "";
  return column == "ram_bytes" ? print_bytes(*number) : std::to_string(*number);
}

}  // namespace

std::string range_sentence(const Model& model) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < model.columns.size(); ++i) {
    const std::string part = range_of(model, i);
    if (!part.empty()) parts.push_back(part);
  }
  const auto ok = std::count_if(model.runs.begin(), model.runs.end(),
                                [](const RunRow& run) { return run.state == "ok"; });
  if (parts.empty()) {
    return fmt::format("Nothing was measured yet: {} of {} runs ended well.", ok,
                       model.runs.size());
  }
  return fmt::format("Measured over {} of {} runs: {}.", ok, model.runs.size(),
                     fmt::join(parts, "; "));
}

std::vector<std::string> make_footnotes(const Reader& reader, int64_t study_id, const Model& model,
                                        const std::vector<CellRow>& cells) {
  std::vector<std::string> notes;
  const std::vector<std::string> differing = shown_keys(cells, false);
  if (!differing.empty()) notes.push_back(fmt::format("differs: {}", fmt::join(differing, ", ")));
  for (std::string note :
       {note_cells(model), note_steps(model), note_untimed(model), note_numerics(model),
        note_forced(model), note_virtual(model), note_statistics(model), note_retries(model),
        note_data(cells), note_tuning(reader, study_id), note_skips(reader, study_id),
        note_plugins(reader, study_id), note_runs(model)}) {
    if (!note.empty()) notes.push_back(std::move(note));
  }
  for (std::string& note : notes_selftest(reader, study_id)) notes.push_back(std::move(note));
  return notes;
}

std::vector<KeyValue> load_environment(const Reader& reader, int64_t study_id) {
  std::vector<KeyValue> result;
  const Table rows = reader.query(kEnvironments, {study_id});
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    for (const std::string& column : rows.columns) {
      const std::string value = shown(rows, i, column);
      if (!value.empty()) result.emplace_back(column, value);
    }
  }
  const Table made = reader.query(
      "SELECT argv_json FROM supervisors WHERE study_id=?1 ORDER BY supervisor_id DESC LIMIT 1",
      {study_id});
  if (!made.empty()) {
    const auto argv = nlohmann::json::parse(*text(made.at(0, "argv_json")));
    result.emplace_back("command",
                        fmt::format("{}", fmt::join(argv.get<std::vector<std::string>>(), " ")));
  }
  return result;
}

std::string machine_line(const Reader& reader, int64_t study_id) {
  const Table rows = reader.query(kEnvironments, {study_id});
  std::vector<std::string> machines;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    std::string line = shown(rows, i, "machine_id").substr(0, kShortHash);
    for (const char* column : {"device_model", "cpu_model"}) {
      const std::string value = shown(rows, i, column);
      if (!value.empty() && line.find(value) == std::string::npos) line += ", " + value;
    }
    const std::string cores = shown(rows, i, "cpu_count");
    if (!cores.empty()) line += fmt::format(", {} cores", cores);
    if (std::find(machines.begin(), machines.end(), line) == machines.end())
      machines.push_back(line);
  }
  return fmt::format("{}", fmt::join(machines, " | "));
}

}  // namespace assay::report
