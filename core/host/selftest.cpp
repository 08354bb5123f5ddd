// A growing comparison of a cell with itself.
#include "core/host/selftest.h"

#include <algorithm>

#include "assay/error.h"
#include "core/evidence/selftest.h"
#include "core/host/comparisons.h"

namespace assay::host {

int64_t schedule_selftest(store::Store& store, int64_t study_id, const std::string& machine_id) {
  ComparisonPlan plan{.design = evidence::selftest_design()};
  const int64_t more = plan.design.pairs;
  {
    const store::Reader reader(store.file());
    const auto arms = evidence::load_arms(reader, study_id);
    if (arms.empty()) throw Error("the study 'selftest' has no cell");
    plan.base = plan.candidate = arms.front();
    const auto open = pair_runs(reader, study_id, machine_id);
    const auto waits = [](const StudyRun& r) {
      return r.state == "queued" || r.state == "killed" || r.state == "infra";
    };
    if (std::any_of(open.begin(), open.end(),
                    [&](const PairRuns& p) { return waits(p.first) || waits(p.second); })) {
      return 0;
    }
    const auto planned = reader.query(
        "SELECT coalesce(max(idx) + 1, 0) n FROM pairs JOIN comparisons USING(comparison_id) WHERE"
        " study_id=?1 AND stage=1",
        {store::Value(study_id)});
    plan.design.pairs += *store::integer(planned.at(0, "n"));
  }
  schedule_pairs(store, study_id, machine_id, {plan}, 1);
  return more;
}

}  // namespace assay::host
