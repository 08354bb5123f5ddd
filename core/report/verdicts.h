// Verdicts: what evidence stored about the comparisons of a study, as a report shows it.
#pragma once

#include <vector>

#include "core/report/model.h"

namespace assay::report {

/// The newest stage of every metric of every comparison, without controls; with the pairs of time.
/// Ratios are shown as a change in per cent: 100 (e^x - 1).
std::vector<VerdictRow> load_verdicts(const store::Reader& reader, int64_t study_id);

/// "float8 is 4.7 % faster than bf16 (99.5 % CI 4.5 to 4.9)": one form per verdict; no word of
/// praise without a verdict behind it.
std::string verdict_sentence(const VerdictRow& row);

}  // namespace assay::report
