// Finding a configuration by a name that people have, and its runs over time.
#include "core/report/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/base/nearest.h"
#include "core/report/figure.h"
#include "core/report/load.h"

namespace assay::report {
namespace {

using store::integer;
using store::Reader;
using store::real;
using store::Table;
using store::text;

constexpr size_t kFewestDigits = 6, kShortHash = 8, kShortId = 12;

bool is_hex(const std::string& word) {
  return word.size() >= kFewestDigits &&
         word.find_first_not_of("0123456789abcdef") == std::string::npos;
}

[[noreturn]] void unknown_cell(const Reader& reader, const std::string& cell) {
  const Table rows = reader.query("SELECT DISTINCT slug FROM study_cells ORDER BY slug");
  std::vector<std::string> slugs;
  for (size_t i = 0; i < rows.rows.size(); ++i) slugs.push_back(*text(rows.at(i, "slug")));
  const std::string near = did_you_mean(nearest(cell, slugs));
  throw Error(
      "no study has a cell '" + cell + "'",
      near.empty() ? "a slug, STUDY/SLUG, or 6 digits of an id; slugs: assay status" : near);
}

/// slug and config_id of the cell that is meant.
std::pair<std::string, std::string> find_cell(const Reader& reader, const std::string& cell) {
  const size_t slash = cell.find('/');
  const std::string study = slash == std::string::npos ? "" : cell.substr(0, slash);
  const std::string slug = slash == std::string::npos ? cell : cell.substr(slash + 1);
  const Table rows = reader.query(
      "SELECT s.slug, c.config_id FROM study_cells s JOIN cells c USING(cell_id) JOIN studies t"
      " USING(study_id) WHERE (s.slug=?1 AND (?2='' OR t.name=?2)) OR (?3 AND"
      " (c.cell_id LIKE ?1 || '%' OR c.config_id LIKE ?1 || '%'))"
      " ORDER BY t.created_us DESC, t.study_id DESC LIMIT 1",
      {slug, study, int64_t{is_hex(cell)}});
  if (rows.empty()) unknown_cell(reader, cell);
  return {*text(rows.at(0, "slug")), *text(rows.at(0, "config_id"))};
}

Table load_points(const Reader& reader, const std::string& config_id, const std::string& metric,
                  int64_t since_us) {
  return reader.query(
      "SELECT r.run_id, r.machine_id, a.started_us, c.binaries_json, m.value, m.unit,"
      " (SELECT t.name FROM study_cells s JOIN studies t USING(study_id) WHERE s.cell_id=c.cell_id"
      "  ORDER BY t.created_us DESC LIMIT 1) study"
      " FROM cells c JOIN runs r USING(cell_id) JOIN attempts a USING(run_id) JOIN metrics m"
      " USING(attempt_id) WHERE c.config_id=?1 AND m.name=?2 AND m.rank=-1 AND m.value IS NOT NULL"
      " AND r.state='ok' AND r.purpose IN('measure','pair') AND a.started_us>=?3"
      " AND a.n=(SELECT max(n) FROM attempts b WHERE b.run_id=r.run_id)"
      " ORDER BY r.machine_id, a.started_us, r.run_id",
      {config_id, metric, since_us});
}

void require_metric(const Reader& reader, const std::string& metric) {
  const Table rows = reader.query("SELECT DISTINCT name FROM metrics WHERE rank=-1 ORDER BY name");
  std::vector<std::string> names;
  for (size_t i = 0; i < rows.rows.size(); ++i) names.push_back(*text(rows.at(i, "name")));
  if (std::find(names.begin(), names.end(), metric) != names.end()) return;
  for (const Column& column : known_columns()) {
    if (column.name == metric) return;  // a metric, but nobody measured it
  }
  throw Error("no run has a metric '" + metric + "'", did_you_mean(nearest(metric, names)));
}

std::string shown(double value, const Column& column) {
  return print(value / column.scale, decimals(value / column.scale, {}));
}

std::string change_line(const ChangePoint& change, const Column& column) {
  return fmt::format("     -- changed by {:+.1f} % here: median {} before, {} after (p {:.3f})\n",
                     100 * change.change(), shown(change.before, column),
                     shown(change.after, column), change.p);
}

std::string series_text(const HistorySeries& series, const Column& column) {
  std::string out = fmt::format("machine {}: {} runs, {} change{}\n",
                                series.machine_id.substr(0, kShortId), series.points.size(),
                                series.changes.size(), series.changes.size() == 1 ? "" : "s");
  size_t widest = heading(column).size();
  for (const HistoryPoint& point : series.points) {
    widest = std::max(widest, shown(point.value, column).size());
  }
  out += fmt::format("{:>6}  {:<23}  {:<8}  {:>{}}  study\n", "run", "started", "binaries",
                     heading(column), widest);
  auto change = series.changes.begin();
  for (size_t i = 0; i < series.points.size(); ++i) {
    if (change != series.changes.end() && change->index == i) out += change_line(*change++, column);
    const HistoryPoint& point = series.points[i];
    out += fmt::format("{:>6}  {:<23}  {:<8}  {:>{}}  {}\n", point.run_id,
                       print_time(point.started_us), point.binaries, shown(point.value, column),
                       widest, point.study);
  }
  return out;
}

}  // namespace

History load_history(const Reader& reader, const std::string& cell, const std::string& metric,
                     int64_t since_us) {
  require_metric(reader, metric);
  const auto [slug, config_id] = find_cell(reader, cell);
  History history{.label = slug, .config_id = config_id, .column = column_for(metric, "1")};
  const Table rows = load_points(reader, config_id, metric, since_us);
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    if (i == 0) history.column = column_for(metric, *text(rows.at(i, "unit")));
    const std::string machine = *text(rows.at(i, "machine_id"));
    if (history.series.empty() || history.series.back().machine_id != machine) {
      history.series.push_back({.machine_id = machine});
    }
    history.series.back().points.push_back(
        {.run_id = *integer(rows.at(i, "run_id")),
         .started_us = *integer(rows.at(i, "started_us")),
         .study = text(rows.at(i, "study")).value_or(""),
         .binaries = sha256(*text(rows.at(i, "binaries_json"))).substr(0, kShortHash),
         .value = *real(rows.at(i, "value"))});
  }
  for (HistorySeries& series : history.series) {
    std::vector<double> values;
    for (const HistoryPoint& point : series.points) values.push_back(point.value);
    series.changes = change_points(values);
  }
  return history;
}

std::string history_text(const History& history) {
  std::string out = fmt::format("{}   config {}   {}\n", history.label,
                                history.config_id.substr(0, kShortId), heading(history.column));
  if (history.series.empty()) {
    return out + "no run of it ended well and measured this\n";
  }
  for (const HistorySeries& series : history.series) {
    out += "\n" + series_text(series, history.column);
  }
  return out;
}

nlohmann::json history_json(const History& history) {
  nlohmann::json out = {{"schema_version", 1},
                        {"cell", history.label},
                        {"config_id", history.config_id},
                        {"metric", history.column.name},
                        {"series", nlohmann::json::array()}};
  for (const HistorySeries& series : history.series) {
    nlohmann::json points = nlohmann::json::array(), changes = nlohmann::json::array();
    for (const HistoryPoint& p : series.points) {
      points.push_back({{"run_id", p.run_id},
                        {"started_us", p.started_us},
                        {"study", p.study},
                        {"binaries", p.binaries},
                        {"value", p.value}});
    }
    for (const ChangePoint& c : series.changes) {
      changes.push_back({{"run_id", series.points[c.index].run_id},
                         {"index", c.index},
                         {"before", c.before},
                         {"after", c.after},
                         {"change", c.change()},
                         {"p", c.p}});
    }
    out["series"].push_back(
        {{"machine_id", series.machine_id}, {"points", points}, {"changes", changes}});
  }
  return out;
}

}  // namespace assay::report
