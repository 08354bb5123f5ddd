// What the linter needs of the database.
#include <algorithm>

#include "core/evidence/lint.h"
#include "core/evidence/run_record.h"
#include "core/evidence/tier.h"

namespace assay::evidence {
namespace {

using store::integer;
using store::real;
using store::Table;
using store::text;
using store::Value;

constexpr const char* kCounter = "fact.counters.";

std::string cell_list(const Arm& arm) {
  std::vector<std::string> cells;
  for (const Arm::Seed& seed : arm.seeds) cells.push_back(seed.cell_id);
  return nlohmann::json(cells).dump();
}

/// Newest attempts of the runs of the arm that ended well.
constexpr const char* kAttempts =
    "WITH x AS (SELECT a.*, r.cell_id FROM attempts a JOIN runs r USING(run_id) WHERE r.state='ok'"
    " AND r.purpose IN('measure','pair') AND r.cell_id IN (SELECT value FROM json_each(?1)) AND"
    " a.n=(SELECT max(n) FROM attempts b WHERE b.run_id=a.run_id)) ";

Table of_attempts(const store::Reader& reader, const std::string& cells, const std::string& sql) {
  return reader.query(kAttempts + sql, {Value(cells)});
}

std::string word(const Table& t, size_t i, const char* column) {
  return text(t.at(i, column)).value_or("not recorded");
}

void load_environment(const store::Reader& reader, const std::string& cells, LintSide& side) {
  const Table rows = of_attempts(
      reader, cells,
      "SELECT DISTINCT e.host, e.device_model, e.driver, e.clock_policy, e.libtorch, e.compiler,"
      " e.build_type, e.sanitizer FROM x JOIN env e USING(env_id)");
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    side.machines.insert(word(rows, i, "device_model") + ", driver " + word(rows, i, "driver") +
                         ", clock " + word(rows, i, "clock_policy") + ", host " +
                         word(rows, i, "host"));
    side.builds.insert("LibTorch " + word(rows, i, "libtorch") + ", " + word(rows, i, "compiler") +
                       ", " + word(rows, i, "build_type"));
    if (word(rows, i, "build_type") == "Debug") side.unfit_builds.insert("Debug");
    if (const auto sanitizer = text(rows.at(i, "sanitizer"))) {
      side.unfit_builds.insert("sanitizer " + *sanitizer);
    }
  }
}

void load_plugins(const store::Reader& reader, const std::string& cells, LintSide& side) {
  const Table rows = of_attempts(reader, cells,
                                 "SELECT DISTINCT p.build_type, ap.role, ap.git FROM x JOIN"
                                 " attempt_plugins ap USING(attempt_id) JOIN plugins p"
                                 " USING(plugin_id) ORDER BY ap.role");
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const std::string build = word(rows, i, "build_type");
    if (!build.empty()) side.plugin_builds.insert(build);
    if (build == "Debug") side.unfit_builds.insert("Debug plugin");
    const auto git = text(rows.at(i, "git"));
    if (git) side.commits[word(rows, i, "role")] = *git;
  }
}

void load_records(const store::Reader& reader, const std::string& cells, LintSide& side) {
  const auto number = [&](const char* sql) {
    const Table row = of_attempts(reader, cells, sql);
    return row.empty() ? 0 : integer(row.rows[0][0]).value_or(0);
  };
  side.profiled_steps =
      number("SELECT count(*) FROM steps JOIN x USING(attempt_id) WHERE kind='profiler'");
  side.allocation_retries =
      number("SELECT sum(alloc_retries) FROM memory JOIN x USING(attempt_id)");
  side.oom_attempts =
      number("SELECT count(*) FROM attempts a JOIN x USING(run_id) WHERE a.state='oom'");
  const Table metrics = of_attempts(reader, cells,
                                    "SELECT name, min(value) value, max(formula_id) formula_id"
                                    " FROM metrics JOIN x USING(attempt_id) GROUP BY name");
  for (size_t i = 0; i < metrics.rows.size(); ++i) {
    const std::string name = *text(metrics.at(i, "name"));
    const double value = real(metrics.at(i, "value")).value_or(0);
    if (name == "mfu" || name == "hfu") side.formulas[name] = word(metrics, i, "formula_id");
    if (name == "fact.numerics_only") side.numerics_only = value > 0;
    if (name.starts_with(kCounter))
      side.counters[name.substr(std::string(kCounter).size())] = value;
  }
}

void load_tuning(const store::Reader& reader, const Arm& arm, LintSide& side) {
  const Table rows = reader.query(
      "SELECT count(*) trials, max(json_extract(c.config_json, '$.train.steps')) steps,"
      " count(DISTINCT json_extract(c.config_json, '$.seed')) seeds FROM trials t JOIN runs r"
      " USING(run_id) JOIN cells c USING(cell_id) WHERE t.arm=?1 AND t.study_id IN(SELECT study_id"
      " FROM study_cells WHERE cell_id=?2)",
      {Value(arm.label), Value(arm.seeds.front().cell_id)});
  side.trials = integer(rows.at(0, "trials")).value_or(0);
  side.trial_steps = integer(rows.at(0, "steps")).value_or(0);
  side.trial_seeds = integer(rows.at(0, "seeds")).value_or(0);
}

LintSide load_side(const store::Reader& reader, const Arm& arm, const std::string& label) {
  LintSide side{.label = label, .config = flat_config(nlohmann::json::parse(arm.config_json))};
  for (const Arm::Seed& seed : arm.seeds) side.seeds.insert(seed.seed);
  const std::string cells = cell_list(arm);
  const Table data = reader.query(
      "SELECT DISTINCT data_fingerprint FROM cells WHERE cell_id IN (SELECT value FROM"
      " json_each(?1))",
      {Value(cells)});
  for (const auto& row : data.rows) side.data.insert(text(row[0]).value_or("").substr(0, 12));
  load_environment(reader, cells, side);
  load_plugins(reader, cells, side);
  load_records(reader, cells, side);
  load_tuning(reader, arm, side);
  return side;
}

}  // namespace

LintInput load_lint(const store::Reader& reader, const Arm& base, const Arm& candidate,
                    const Design& design, const std::vector<Pair>& pairs) {
  LintInput input{.base = load_side(reader, base, design.baseline),
                  .candidate = load_side(reader, candidate, design.candidate),
                  .axes = design.axes,
                  .fewest_pairs = design.rule.minimum};
  std::vector<int64_t> ids;
  for (const Pair& p : pairs) {
    input.pairs += p.stage == 1;
    if (p.stage > 0) ids.insert(ids.end(), {p.run_a, p.run_b});
  }
  const auto runs = load_runs(reader, ids);
  for (const Pair& p : pairs) {
    if (p.stage == 0) continue;
    for (const auto& [id, side] :
         {std::pair(p.run_a, &input.base), std::pair(p.run_b, &input.candidate)}) {
      const RunRecord& run = runs.at(id);
      if (!run.ok()) continue;
      side->untimed = side->untimed || !run.timed;
      side->resumed = side->resumed || run.resumed_step.has_value();
    }
  }
  // Machines and builds can only be compared where both sides have run.
  for (const auto field : {&LintSide::machines, &LintSide::builds, &LintSide::plugin_builds}) {
    if ((input.base.*field).empty() || (input.candidate.*field).empty()) {
      (input.base.*field).clear();
      (input.candidate.*field).clear();
    }
  }
  return input;
}

}  // namespace assay::evidence
