// Largest values over runs, and the hash of a series of losses.
#include "core/evidence/gate_values.h"

#include <algorithm>

#include "core/base/files.h"
#include "core/evidence/exact.h"
#include "core/evidence/run_record.h"

namespace assay::evidence {
namespace {

using store::integer;
using store::real;
using store::Table;
using store::text;
using store::Value;

constexpr size_t kExactDigits = 12;  // 48 bits: exact in a double

std::optional<double> hash_of(const BitSeries& series) {
  std::string bytes;
  for (const StepBits& s : series.steps) {
    if (!s.loss_bits) return std::nullopt;
    bytes += std::to_string(s.step) + ":" + std::to_string(*s.loss_bits) + ":" +
             (s.grad_norm_bits ? std::to_string(*s.grad_norm_bits) : "-") + "\n";
  }
  if (bytes.empty()) return std::nullopt;
  return static_cast<double>(std::stoull(sha256(bytes).substr(0, kExactDigits), nullptr, 16));
}

std::string worst_state(const store::Reader& reader, const std::string& cell_id) {
  const Table rows = reader.query(
      "SELECT state FROM runs WHERE cell_id=?1 AND state<>'ok' ORDER BY state IN"
      "('queued','running'), state_us DESC LIMIT 1",
      {Value(cell_id)});
  return rows.empty() ? "never run" : *text(rows.at(0, "state"));
}

}  // namespace

BuildValues build_values(const store::Reader& reader, const std::string& cell_id) {
  BuildValues build;
  const std::vector<int64_t> ids = ok_runs(reader, cell_id);
  if (ids.empty()) {
    build.state = worst_state(reader, cell_id);
    return build;
  }
  build.state = "ok";
  const auto runs = load_runs(reader, ids);
  build.machine_id = runs.begin()->second.machine_id;
  for (const Proxy& proxy : proxies()) {
    std::optional<double> most;
    for (const auto& [id, run] : runs) {
      const auto value = run.figure(stored_name(proxy.metric));
      if (value) most = std::max(most.value_or(*value), *value);
    }
    if (most) build.values.emplace_back(proxy.metric, *most);
  }
  const auto bits = hash_of(load_bits(reader, runs.begin()->second));
  if (bits) build.values.emplace_back("loss_bits", *bits);
  return build;
}

std::vector<GateCell::Anchor> load_anchors(const store::Reader& reader, const std::string& gate,
                                           const std::string& machine_id,
                                           const std::string& config_id,
                                           const std::string& anchor) {
  const Table rows = reader.query(
      "SELECT anchor, metric, value FROM baselines WHERE gate=?1 AND machine_id=?2 AND"
      " config_id=?3 AND (?4='' OR anchor=?4) ORDER BY anchor, metric",
      {Value(gate), Value(machine_id), Value(config_id), Value(anchor)});
  std::vector<GateCell::Anchor> anchors;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    anchors.push_back({.name = *text(rows.at(i, "anchor")),
                       .metric = *text(rows.at(i, "metric")),
                       .value = *real(rows.at(i, "value"))});
  }
  return anchors;
}

std::vector<ConfiguredCell> configured_cells(const store::Reader& reader, int64_t study_id) {
  const Table rows = reader.query(
      "SELECT c.config_id, c.cell_id, s.slug FROM study_cells s JOIN cells c USING(cell_id) WHERE"
      " s.study_id=?1 AND EXISTS(SELECT 1 FROM runs r WHERE r.cell_id=c.cell_id) ORDER BY"
      " s.ordinal",
      {Value(study_id)});
  std::vector<ConfiguredCell> cells;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    cells.push_back({.config_id = *text(rows.at(i, "config_id")),
                     .cell_id = *text(rows.at(i, "cell_id")),
                     .slug = *text(rows.at(i, "slug"))});
  }
  return cells;
}

}  // namespace assay::evidence
