// Losses of two arms, by the tier that their difference owes.
#pragma once

#include <vector>

#include "core/evidence/assess.h"
#include "core/evidence/run_record.h"

namespace assay::evidence {

/// T0: `loss` by bits (judge_bits) of the first seed that both have run. T1: `loss` within the
/// envelope of the baseline's perturbed runs (purpose `envelope`). T2: `final_val_loss` over paired
/// seeds, parity or a winner. Beside it, where seeds allow, `loss_at_equal_tokens`,
/// `loss_at_equal_time` (differences over seeds) and `tokens_to_target` (a log ratio of medians).
std::vector<Verdict> loss_verdicts(const store::Reader& reader, const Arm& base,
                                   const Arm& candidate, const Design& design);

/// A run and its repetition: T0 bits, T1 within the envelope of the run's perturbed relatives, T2
/// parity of the final losses as one seed (never shown by one alone).
Verdict judge_again(const store::Reader& reader, Tier tier, const RunRecord& run,
                    const RunRecord& again);

/// Margin of the design, else 1 % of the steps times the exchange rate of the baseline's recipe,
/// measured on cells of the database that differ from it only in a schedule 3 to 10 % shorter.
struct Margin {
  std::optional<double> nats{};
  double steps = 0;      ///< the same in steps of the baseline, 0 where no rate is known
  std::string method{};  ///< "declared", "exchange rate of 3 seeds", "not measured"
};
Margin loss_margin(const store::Reader& reader, const Arm& base, const Design& design);

}  // namespace assay::evidence
