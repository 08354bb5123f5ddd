// One comparison: time from pairs, bytes and counts from all runs, losses from paired seeds.
#include "core/evidence/assess.h"

#include <algorithm>
#include <set>

#include "core/evidence/exact.h"
#include "core/evidence/lint.h"
#include "core/evidence/loss.h"
#include "core/evidence/timing.h"
#include "core/store/comparisons.h"

namespace assay::evidence {
namespace {

using store::integer;
using store::Real;
using store::Table;
using store::text;
using store::Value;

int64_t comparison_of(const store::Reader& reader, int64_t study_id, const Arm& base,
                      const Arm& candidate) {
  const Table row = reader.query(
      "SELECT comparison_id FROM comparisons WHERE study_id=?1 AND base_cell=?2 AND cand_cell=?3"
      " ORDER BY comparison_id LIMIT 1",
      {Value(study_id), Value(base.seeds.front().cell_id), Value(candidate.seeds.front().cell_id)});
  return row.empty() ? 0 : *integer(row.at(0, "comparison_id"));
}

/// Ids of all runs of the pairs, and of the first cells of both arms.
std::map<int64_t, RunRecord> runs_of(const store::Reader& reader, const Comparison& c) {
  std::set<int64_t> ids;
  for (const Pair& p : c.pairs) ids.insert({p.run_a, p.run_b});
  for (const std::string& cell : {c.base_cell, c.cand_cell}) {
    const auto more = ok_runs(reader, cell);
    ids.insert(more.begin(), more.end());
  }
  const std::vector<int64_t> list(ids.begin(), ids.end());
  return load_runs(reader, list);
}

/// Values of a figure on one side: runs of the cell; of one cell against itself the pairs' sides.
std::vector<double> side(const Comparison& c, const std::map<int64_t, RunRecord>& runs,
                         const std::string& name, bool candidate) {
  std::set<int64_t> mine;
  if (c.base_cell == c.cand_cell) {
    for (const Pair& p : c.pairs) {
      if (p.stage > 0) mine.insert(candidate ? p.run_b : p.run_a);
    }
  } else {
    for (const auto& [id, run] : runs) {
      if (run.cell_id == (candidate ? c.cand_cell : c.base_cell)) mine.insert(id);
    }
  }
  std::vector<double> values;
  for (const int64_t id : mine) {
    const auto value = runs.at(id).ok() ? runs.at(id).figure(name) : std::nullopt;
    if (value) values.push_back(*value);
  }
  return values;
}

void add_exact(Comparison& c, const std::map<int64_t, RunRecord>& runs) {
  for (const Proxy& proxy : proxies()) {
    const std::string name = stored_name(proxy.metric);
    Verdict v = judge_exact(proxy, side(c, runs, name, false), side(c, runs, name, true));
    if (v.n_used > 0) c.verdicts.push_back(std::move(v));
  }
}

Design stored_design(const store::Reader& reader, int64_t comparison_id) {
  const Table row = reader.query("SELECT design_json FROM comparisons WHERE comparison_id=?1",
                                 {Value(comparison_id)});
  return design_from_json(nlohmann::json::parse(*text(row.at(0, "design_json"))));
}

const Arm* arm_with(const std::vector<Arm>& arms, const std::string& cell_id) {
  for (const Arm& arm : arms) {
    for (const Arm::Seed& seed : arm.seeds) {
      if (seed.cell_id == cell_id) return &arm;
    }
  }
  return nullptr;
}

Real low(const Verdict& v) { return v.interval ? Real(v.interval->low) : std::nullopt; }
Real high(const Verdict& v) { return v.interval ? Real(v.interval->high) : std::nullopt; }
Real level(const Verdict& v) { return v.interval ? Real(v.interval->level) : std::nullopt; }

store::VerdictRow row_of(const Verdict& v) {
  return {.metric = v.metric,
          .stage = v.stage,
          .verdict = name_of(v.call),
          .reason = v.reason,
          .n_used = v.n_used,
          .n_discarded = v.n_discarded,
          .estimate = v.estimate,
          .ci_lo = low(v),
          .ci_hi = high(v),
          .ci_level = level(v),
          .p_greater = v.p_greater,
          .p_less = v.p_less,
          .p_same = v.p_same,
          .p_adjusted = v.p_adjusted,
          .min_effect = v.min_effect,
          .same_margin = v.same_margin,
          .mde = v.mde,
          .sd = v.sd,
          .sd_robust = v.sd_robust,
          .control_verdict = v.control.empty() ? std::nullopt : store::Text(v.control),
          .method_id = v.method_id,
          .labels = v.labels};
}

store::PairResult result_of(const Pair& p) {
  store::PairResult r{.stage = p.stage, .idx = p.index, .quality = p.quality};
  r.value_a = p.value_a;
  r.value_b = p.value_b;
  if (p.value_a && p.value_b) {
    r.d = p.log_ratio();
    r.change_pct = 100 * (*p.value_b / *p.value_a - 1);
  }
  if (!p.discard_reason.empty()) r.discard_reason = p.discard_reason;
  return r;
}

}  // namespace

Comparison assess(const store::Reader& reader, int64_t study_id, const Arm& base,
                  const Arm& candidate, const Design& design) {
  Comparison c{.comparison_id = comparison_of(reader, study_id, base, candidate),
               .study_id = study_id,
               .label = design.candidate.empty() ? candidate.label : design.candidate,
               .baseline = design.baseline.empty() ? base.label : design.baseline,
               .base_cell = base.seeds.front().cell_id,
               .cand_cell = candidate.seeds.front().cell_id,
               .design = to_json(design),
               .tier = design.tier};
  if (c.comparison_id != 0) c.pairs = load_pairs(reader, c.comparison_id);
  const auto runs = runs_of(reader, c);
  measure_pairs(reader, runs, design, c.pairs);
  c.verdicts = time_verdicts(c.pairs, design);
  add_exact(c, runs);
  for (Verdict& v : loss_verdicts(reader, base, candidate, design)) {
    c.verdicts.push_back(std::move(v));
  }
  c.lint = lint(reader, base, candidate, design, c.pairs);
  return c;
}

void adjust(std::vector<Comparison>& comparisons) {
  std::vector<double> p;
  std::vector<std::pair<Verdict*, double>> claims;
  for (Comparison& c : comparisons) {
    const double alpha = c.design.value("alpha", PairRule{}.alpha);
    for (Verdict& v : c.verdicts) {
      if (v.stage == 0 || !v.p_greater || !v.p_less) continue;
      p.push_back(std::min(*v.p_greater, *v.p_less));
      claims.emplace_back(&v, alpha);
    }
  }
  const std::vector<double> adjusted = holm(p);
  for (size_t i = 0; i < claims.size(); ++i) {
    auto& [v, alpha] = claims[i];
    v->p_adjusted = adjusted[i];
    const bool winner = v->call == Call::faster || v->call == Call::slower ||
                        v->call == Call::better || v->call == Call::worse;
    if (!winner || adjusted[i] < alpha) continue;
    v->call = v->method_id == "pair.sr.v1" ? Call::unresolved : Call::not_shown;
    v->reason = "holm";
  }
}

std::vector<Comparison> assess_study(const store::Reader& reader, int64_t study_id) {
  const std::vector<Arm> arms = load_arms(reader, study_id);
  const Table rows = reader.query(
      "SELECT comparison_id, base_cell, cand_cell FROM comparisons WHERE study_id=?1"
      " ORDER BY comparison_id",
      {Value(study_id)});
  std::vector<Comparison> list;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const Arm* base = arm_with(arms, *text(rows.at(i, "base_cell")));
    const Arm* candidate = arm_with(arms, *text(rows.at(i, "cand_cell")));
    if (!base || !candidate) continue;  // cells of an older plan of the study
    const Design design = stored_design(reader, *integer(rows.at(i, "comparison_id")));
    list.push_back(assess(reader, study_id, *base, *candidate, design));
  }
  adjust(list);
  return list;
}

void store_verdicts(store::Store& store, const Comparison& c) {
  std::vector<store::PairResult> pairs;
  for (const Pair& p : c.pairs) pairs.push_back(result_of(p));
  std::vector<store::VerdictRow> verdicts;
  for (const Verdict& v : c.verdicts) verdicts.push_back(row_of(v));
  std::vector<store::LintRow> findings;
  for (const LintFinding& f : c.lint) {
    findings.push_back(
        {.rule = f.rule,
         .value_a = f.base,
         .value_b = f.candidate,
         .overridden_by = f.allowed.empty() ? std::nullopt : store::Text(f.allowed)});
  }
  store::put_pair_results(store, c.comparison_id, pairs);
  store::put_verdicts(store, c.comparison_id, verdicts, findings);
}

}  // namespace assay::evidence
