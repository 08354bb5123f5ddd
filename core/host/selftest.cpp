// Growing comparisons of a cell with itself and with cells that do more work.
#include "core/host/selftest.h"

#include <algorithm>

#include "assay/error.h"
#include "core/evidence/selftest.h"
#include "core/host/comparisons.h"

namespace assay::host {
namespace {

bool waits(const StudyRun& r) {
  return r.state == "queued" || r.state == "killed" || r.state == "infra";
}

/// Pairs that were planned of the base cell and `arm`.
int64_t planned_pairs(const store::Reader& reader, int64_t study_id, const evidence::Arm& arm) {
  const auto rows = reader.query(
      "SELECT coalesce(max(idx) + 1, 0) n FROM pairs JOIN comparisons USING(comparison_id) WHERE"
      " study_id=?1 AND cand_cell=?2 AND stage=1",
      {store::Value(study_id), store::Value(arm.seeds.front().cell_id)});
  return *store::integer(rows.at(0, "n"));
}

/// The next comparison, with all pairs that it will then have.
ComparisonPlan next_comparison(const store::Reader& reader, int64_t study_id,
                               const std::vector<evidence::Arm>& arms) {
  const evidence::Arm& base = arms.front();
  const evidence::Arm* next = &base;
  int64_t of_next = planned_pairs(reader, study_id, base), injected = 0, fewest = 0;
  const evidence::Arm* rarest = nullptr;
  for (auto arm = arms.begin() + 1; arm != arms.end(); ++arm) {
    evidence::extra_work(base.config_json, arm->config_json);
    const int64_t planned = planned_pairs(reader, study_id, *arm);
    injected += planned;
    if (!rarest || planned < fewest) {
      rarest = &*arm;
      fewest = planned;
    }
  }
  if (rarest && injected < of_next) {
    next = rarest;
    of_next = fewest;
  }
  ComparisonPlan plan{.base = base, .candidate = *next, .design = evidence::selftest_design()};
  if (next != &base) plan.design.candidate = next->label;
  plan.design.pairs += of_next;
  return plan;
}

}  // namespace

int64_t schedule_selftest(store::Store& store, int64_t study_id, const std::string& machine_id) {
  ComparisonPlan plan;
  {
    const store::Reader reader(store.file());
    const auto arms = evidence::load_arms(reader, study_id);
    if (arms.empty()) throw Error("the study 'selftest' has no cell");
    const auto open = pair_runs(reader, study_id, machine_id);
    if (std::any_of(open.begin(), open.end(),
                    [](const PairRuns& p) { return waits(p.first) || waits(p.second); })) {
      return 0;
    }
    plan = next_comparison(reader, study_id, arms);
  }
  schedule_pairs(store, study_id, machine_id, {plan}, 1);
  return evidence::selftest_design().pairs;
}

}  // namespace assay::host
