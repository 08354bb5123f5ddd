// settle: steady steps, figures, invariants, in this order.
#include "core/evidence/settle.h"

#include "core/evidence/figures.h"
#include "core/evidence/invariants.h"

namespace assay::evidence {
namespace {

void append(std::vector<store::Metric>& all, std::vector<store::Metric> more) {
  for (store::Metric& metric : more) {
    if (metric.value) all.push_back(std::move(metric));
  }
}

}  // namespace

Settled settle(store::Store& store, int64_t attempt_id) {
  const Attempt attempt = load_attempt(store, attempt_id);
  const UsedSteps used = used_steps(attempt);
  if (used.steady) {
    store.set_steady(attempt_id, used.first_step, used.last_step, used.steady->method());
  }
  Settled settled;
  append(settled.metrics, memory_figures(store, attempt));
  append(settled.metrics, time_figures(attempt, used));
  append(settled.metrics, breakdown_figures(store, attempt, used));
  append(settled.metrics, virtual_figures(store, attempt));
  append(settled.metrics, communication_figures(store, attempt));
  append(settled.metrics, loss_figures(store, attempt));
  store.put_metrics(attempt_id, settled.metrics);
  settled.violations = broken_invariants(store, attempt);
  return settled;
}

}  // namespace assay::evidence
