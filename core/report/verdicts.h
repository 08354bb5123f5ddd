// Verdicts: what evidence stored about the comparisons of a study, as a report shows it.
#pragma once

#include <vector>

#include "core/report/model.h"

namespace assay::report {

/// The newest stage of every metric of every comparison, without controls; with the pairs of time.
/// Ratios are shown as a change in per cent: 100 (e^x - 1).
std::vector<VerdictRow> load_verdicts(const store::Reader& reader, int64_t study_id);

/// False for figures that stand beside a verdict (losses at equal tokens, tokens to a target).
bool is_claim(const VerdictRow& row);

/// "float8 against bf16, step_time: FASTER, -4.50 % (99.5 % CI -4.70 to -4.30, n = 20)": one form
/// per verdict; no word of praise without a verdict behind it.
std::string verdict_sentence(const VerdictRow& row);

}  // namespace assay::report
