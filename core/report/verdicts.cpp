// Loading and wording of verdicts.
#include "core/report/verdicts.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace assay::report {
namespace {

using store::integer;
using store::Reader;
using store::real;
using store::Table;
using store::text;

/// Times, bytes and counts are stored as ln(candidate / baseline), losses as differences.
bool is_ratio(const std::string& method) {
  return method.starts_with("pair.") || method.starts_with("exact.") ||
         method.starts_with("target.");
}

double per_cent(double log_ratio) { return 100 * std::expm1(log_ratio); }

std::optional<double> shown(const Table& rows, size_t i, const char* column, bool ratio) {
  const auto value = real(rows.at(i, column));
  if (!value || !ratio) return value;
  return per_cent(*value);
}

Figure change_of(const Table& rows, size_t i, bool ratio) {
  const auto value = shown(rows, i, "estimate", ratio);
  if (!value) return missing(FigureState::not_measured);
  return measured(*value, shown(rows, i, "ci_lo", ratio), shown(rows, i, "ci_hi", ratio), 1);
}

std::string unit_of(const std::string& metric, bool ratio) {
  if (ratio) return "%";
  return metric.find("loss") != std::string::npos ? "nat" : "";
}

std::string slug_of(const Reader& reader, int64_t study_id, const std::string& cell_id) {
  const Table rows = reader.query(
      "SELECT slug FROM study_cells WHERE cell_id=?2 ORDER BY study_id=?1 DESC LIMIT 1",
      {study_id, cell_id});
  return rows.empty() ? cell_id.substr(0, 12) : *text(rows.at(0, "slug"));
}

std::vector<PairPoint> load_pairs(const Reader& reader, int64_t comparison_id, int64_t stage) {
  const Table rows = reader.query(
      "SELECT idx, orientation, change_pct, discarded FROM v_pair WHERE comparison_id=?1 AND"
      " stage=?2 AND change_pct IS NOT NULL AND statistic=(SELECT min(statistic) FROM v_pair"
      " WHERE comparison_id=?1) ORDER BY idx",
      {comparison_id, stage});
  std::vector<PairPoint> points;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    points.push_back({.index = *integer(rows.at(i, "idx")),
                      .baseline_first = text(rows.at(i, "orientation")) == "AB",
                      .change_pct = *real(rows.at(i, "change_pct")),
                      .discarded = integer(rows.at(i, "discarded")) != 0});
  }
  return points;
}

std::string with_sign(const std::string& display) {
  return display.starts_with('-') ? display : "+" + display;
}

std::string interval(const VerdictRow& row) {
  if (row.change.display_low.empty()) return "no interval";
  const std::string level = row.level ? fmt::format("{:.3g} % ", 100 * *row.level) : "";
  return fmt::format("{}CI {} to {}", level, with_sign(row.change.display_low),
                     with_sign(row.change.display_high));
}

}  // namespace

std::vector<VerdictRow> load_verdicts(const Reader& reader, int64_t study_id) {
  const Table rows = reader.query(
      "SELECT v.* FROM v_verdict v WHERE v.study_id=?1 AND v.stage>0 AND v.stage=(SELECT"
      " max(stage) FROM v_verdict w WHERE w.comparison_id=v.comparison_id AND w.metric=v.metric)"
      " ORDER BY v.comparison_id, v.metric='step_time' DESC, v.metric",
      {study_id});
  std::vector<VerdictRow> verdicts;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const std::string method = *text(rows.at(i, "method_id"));
    const bool ratio = is_ratio(method);
    VerdictRow row{.candidate = *text(rows.at(i, "label")),
                   .baseline = slug_of(reader, study_id, *text(rows.at(i, "base_cell"))),
                   .metric = *text(rows.at(i, "metric")),
                   .verdict = *text(rows.at(i, "verdict")),
                   .reason = *text(rows.at(i, "reason")),
                   .method = method,
                   .tier = *text(rows.at(i, "loss_tier")),
                   .control = text(rows.at(i, "control_verdict")).value_or(""),
                   .change = change_of(rows, i, ratio),
                   .level = real(rows.at(i, "ci_level")),
                   .used = *integer(rows.at(i, "n_used")),
                   .discarded = *integer(rows.at(i, "n_discarded"))};
    row.unit = unit_of(row.metric, ratio);
    if (const auto mde = shown(rows, i, "mde", ratio)) row.mde = print(*mde, decimals(*mde, *mde));
    row.labels = nlohmann::json::parse(*text(rows.at(i, "labels_json")));
    if (ratio) {
      row.pairs =
          load_pairs(reader, *integer(rows.at(i, "comparison_id")), *integer(rows.at(i, "stage")));
    }
    verdicts.push_back(std::move(row));
  }
  return verdicts;
}

bool is_claim(const VerdictRow& row) {
  return !row.method.starts_with("aligned.") && !row.method.starts_with("target.");
}

std::string verdict_sentence(const VerdictRow& row) {
  const std::string who = fmt::format("{} against {}, {}", row.candidate, row.baseline, row.metric);
  if (!is_claim(row)) {
    const std::string what = row.change.value ? with_sign(row.change.display) + " " + row.unit
                                              : "not measured (" + row.reason + ")";
    return fmt::format("{}: {}, beside the verdict", who, what);
  }
  if (row.verdict == "UNRESOLVED" || row.verdict == "NOT_SHOWN") {
    const std::string seen =
        row.mde.empty() ? ""
                        : fmt::format("; effects below {} {} could not be seen", row.mde, row.unit);
    return fmt::format("{}: {} ({}, n = {}{})", who, row.verdict, row.reason, row.used, seen);
  }
  if (row.verdict == "INVALID") return fmt::format("{}: INVALID ({})", who, row.reason);
  const std::string size = row.change.value
                               ? fmt::format("{} {} ({}, n = {})", with_sign(row.change.display),
                                             row.unit, interval(row), row.used)
                               : fmt::format("n = {}", row.used);
  return fmt::format("{}: {}, {}", who, row.verdict, size);
}

}  // namespace assay::report
