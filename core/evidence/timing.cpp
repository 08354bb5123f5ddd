// From pairs of runs to verdicts on step time.
#include "core/evidence/timing.h"

#include <algorithm>
#include <set>

namespace assay::evidence {
namespace {

using store::integer;
using store::text;

constexpr const char* kNotRun = "not run";
constexpr int64_t kUsualPairs = 20;
constexpr int64_t kFirstControls = 2;

std::string why_unmeasured(const RunRecord& run) {
  if (run.state == "queued" || run.state == "running") return kNotRun;
  if (!run.ok()) return "run " + std::to_string(run.run_id) + " ended as " + run.state;
  return "run " + std::to_string(run.run_id) + " has no timing";
}

/// The latest first used step of all runs, so that both arms use the same step numbers.
int64_t common_first_step(const std::map<int64_t, RunRecord>& runs) {
  int64_t first = 0;
  for (const auto& [id, run] : runs) {
    if (run.has_timing()) first = std::max(first, *run.steady_first);
  }
  return first;
}

std::optional<double> switches_of_first_controls(const std::vector<Pair>& pairs,
                                                 const std::map<int64_t, RunRecord>& runs) {
  std::vector<Quality> first;
  for (const Pair& p : pairs) {
    if (p.stage != 0 || p.index >= kFirstControls) continue;
    for (const int64_t id : {p.run_a, p.run_b}) {
      if (runs.contains(id) && runs.at(id).ok()) first.push_back(runs.at(id).quality);
    }
  }
  return usual_switches(first);
}

/// What the warm-up detector says of a pair's runs beyond its version: "unsteady", "drift".
void add_steady_labels(const Pair& p, std::set<std::string>& labels) {
  for (const auto& method : p.quality.value("steady", nlohmann::json::array())) {
    for (const char* label : {"unsteady", "drift", "too_short"}) {
      if (method.get<std::string>().find(label) != std::string::npos) labels.insert(label);
    }
  }
}

struct Tally {
  std::vector<double> d{};
  std::set<std::string> labels{};
  int64_t planned = 0, discarded = 0, second_slower = 0, ordered = 0;

  void add(const Pair& p) {
    ++planned;
    if (!p.used()) {
      discarded += !p.discard_reason.empty() && p.discard_reason != kNotRun;
      return;
    }
    d.push_back(p.log_ratio());
    add_steady_labels(p, labels);
    if (d.back() == 0) return;
    ++ordered;
    second_slower += p.baseline_first == (d.back() > 0);
  }
  /// Share of what was measured.
  bool noisy() const {
    const auto measured = static_cast<double>(d.size()) + static_cast<double>(discarded);
    return measured > 0 && static_cast<double>(discarded) > kMostDiscarded * measured;
  }
};

Tally tally(const std::vector<Pair>& pairs, int64_t stage) {
  Tally t;
  for (const Pair& p : pairs) {
    if (p.stage == stage) t.add(p);
  }
  return t;
}

Verdict judge(const Tally& t, const PairRule& rule, const Verdict* control, int64_t stage) {
  Verdict v = judge_pairs(t.d, rule, control);
  v.stage = static_cast<int>(stage);
  v.n_discarded = t.discarded;
  if (t.noisy() && v.call != Call::invalid) {
    v.call = Call::unresolved;
    v.reason = "noisy";
  }
  if (order_p(t.second_slower, t.ordered) < kOrderAlpha) v.labels.push_back("order");
  v.labels.insert(v.labels.end(), t.labels.begin(), t.labels.end());
  if (v.n_used < t.planned - t.discarded && !v.more && v.reason == "too_few") {
    v.more = t.planned - t.discarded - v.n_used;
  }
  return v;
}

}  // namespace

std::vector<Pair> load_pairs(const store::Reader& reader, int64_t comparison_id) {
  const store::Table rows = reader.query(
      "SELECT stage, idx, orientation, run_a, run_b FROM pairs WHERE comparison_id=?1"
      " ORDER BY stage, idx",
      {store::Value(comparison_id)});
  std::vector<Pair> pairs;
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    pairs.push_back({.stage = static_cast<int>(*integer(rows.at(i, "stage"))),
                     .index = *integer(rows.at(i, "idx")),
                     .baseline_first = *text(rows.at(i, "orientation")) == "AB",
                     .run_a = *integer(rows.at(i, "run_a")),
                     .run_b = *integer(rows.at(i, "run_b"))});
  }
  return pairs;
}

void measure_pairs(const store::Reader& reader, const std::map<int64_t, RunRecord>& runs,
                   const Design& design, std::vector<Pair>& pairs) {
  const int64_t first_step = common_first_step(runs);
  const auto usual = switches_of_first_controls(pairs, runs);
  for (Pair& p : pairs) {
    const RunRecord &a = runs.at(p.run_a), &b = runs.at(p.run_b);
    p.quality = {{"a", to_json(a.quality)}, {"b", to_json(b.quality)}, {"first_step", first_step}};
    if (!a.has_timing() || !b.has_timing()) {
      p.discard_reason = why_unmeasured(a.has_timing() ? b : a);
      continue;
    }
    p.discard_reason = discard_reason(a.quality, b.quality, design.limits, usual);
    const StepTimes ta = step_times(reader, a, first_step, design.statistic);
    const StepTimes tb = step_times(reader, b, first_step, design.statistic);
    p.value_a = ta.statistic;
    p.value_b = tb.statistic;
    p.median_a = ta.median;
    p.median_b = tb.median;
    p.quality["steps"] = {ta.steps, tb.steps};
    p.quality["steady"] = {a.steady_method, b.steady_method};
    if (p.discard_reason.empty() && (!p.value_a || !p.value_b)) p.discard_reason = "no used step";
  }
}

std::vector<Verdict> time_verdicts(const std::vector<Pair>& pairs, const Design& design) {
  std::vector<Verdict> verdicts;
  if (pairs.empty()) {
    verdicts.push_back({.metric = "step_time",
                        .reason = kNoPairs,
                        .method_id = "pair.sr.v1",
                        .more = std::max<int64_t>(design.pairs, kUsualPairs)});
    return verdicts;
  }
  const Tally controls = tally(pairs, 0);
  if (controls.planned > 0) {
    verdicts.push_back(judge(controls, control_rule(design.rule), nullptr, 0));
  }
  for (const int64_t stage : {1, 2}) {
    const Tally t = tally(pairs, stage);
    if (t.planned == 0) continue;
    const Verdict* control = controls.d.empty() ? nullptr : &verdicts.front();
    Verdict v = judge(t, design.rule, control, stage);
    if (!control) v.labels.push_back("no_control");
    verdicts.push_back(std::move(v));
  }
  return verdicts;
}

}  // namespace assay::evidence
