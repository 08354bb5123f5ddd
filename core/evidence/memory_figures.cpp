// Figures of memory and communication: maxima over ranks, bytes per step.
#include "core/evidence/figures.h"

namespace assay::evidence {
namespace {

using store::Metric;
using store::real;
using store::text;

/// predicted / measured - 1; nothing without both.
std::optional<double> prediction_error(std::optional<double> predicted,
                                       std::optional<double> measured) {
  if (!predicted || !measured || *measured <= 0) return std::nullopt;
  return *predicted / *measured - 1;
}

std::optional<double> as_real(const std::optional<int64_t>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

/// What workers measured by rank becomes one figure: the largest, with its unit and formula.
void add_rank_maxima(const store::Store& store, const Attempt& attempt,
                     std::vector<Metric>& figures) {
  const store::Table rows = store.query(
      "SELECT name, max(value) value, min(unit) unit, min(formula_id) formula_id FROM metrics"
      " WHERE attempt_id=?1 AND rank>=0 AND value IS NOT NULL"
      " AND (name NOT LIKE 'fact.%' OR name IN('fact.numerics_only','fact.force_balance'))"
      " AND (?2 OR unit NOT IN('s','1/s','s/step')) GROUP BY name ORDER BY name",
      {attempt.attempt_id, int64_t{attempt.has_timing}});
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    figures.push_back({.name = *text(rows.at(i, "name")),
                       .value = real(rows.at(i, "value")),
                       .unit = *text(rows.at(i, "unit")),
                       .formula_id = *text(rows.at(i, "formula_id"))});
  }
}

}  // namespace

std::vector<Metric> memory_figures(const store::Store& store, const Attempt& attempt) {
  std::vector<Metric> figures;
  std::optional<double> allocated;
  for (const char* name : {"peak_allocated_bytes", "peak_reserved_bytes", "peak_rss_bytes"}) {
    const store::Table row =
        store.query("SELECT max(" + std::string(name) + ") value FROM memory WHERE attempt_id=?1",
                    {attempt.attempt_id});
    const auto value = real(row.at(0, "value"));
    if (figures.empty()) allocated = value;
    figures.push_back({.name = name, .value = value, .unit = "bytes", .formula_id = "mem.v1"});
  }
  figures.push_back({.name = "prediction_error",
                     .value = prediction_error(as_real(attempt.predicted_bytes), allocated),
                     .unit = "1",
                     .formula_id = "mem.err.v1"});
  add_rank_maxima(store, attempt, figures);
  return figures;
}

std::vector<Metric> communication_figures(const store::Store& store, const Attempt& attempt) {
  // Bytes per step of the rank that sends most. One rank alone sends nothing: that is exact.
  const store::Table row = store.query(
      "SELECT max(wire) wire, max(payload) payload, max(calls) calls FROM (SELECT"
      " sum(1.0*wire_bytes/steps) wire, sum(1.0*payload_bytes/steps) payload,"
      " sum(1.0*count/steps) calls FROM collectives WHERE attempt_id=?1 AND steps>0"
      " AND phase NOT IN('control','eval','init','checkpoint') GROUP BY rank)",
      {attempt.attempt_id});
  const auto figure = [&](const char* name, const char* column, const char* unit) -> Metric {
    auto value = real(row.at(0, column));
    if (!value && attempt.world_size() == 1) value = 0;
    return {.name = name, .value = value, .unit = unit, .formula_id = "comm.bytes.v1"};
  };
  return {figure("wire_bytes", "wire", "bytes/step"),
          figure("payload_bytes", "payload", "bytes/step"),
          figure("collectives", "calls", "1/step")};
}

}  // namespace assay::evidence
