// Timing: the pairs of a comparison with their values, filtered, and the verdicts on step time.
#pragma once

#include <map>
#include <vector>

#include "core/evidence/design.h"
#include "core/evidence/run_record.h"
#include "core/evidence/verdict.h"

namespace assay::evidence {

inline constexpr const char* kNoPairs = "no_pairs";  ///< reason of a verdict that nobody planned

/// Pairs as they were planned; no values yet.
std::vector<Pair> load_pairs(const store::Reader& reader, int64_t comparison_id);

/// Fills values and discard reasons. All runs are measured over the same steps: from the latest
/// first steady step of any of them.
void measure_pairs(const store::Reader& reader, const std::map<int64_t, RunRecord>& runs,
                   const Design& design, std::vector<Pair>& pairs);

/// The control (stage 0), then one verdict per stage that has pairs; of planned but unmeasured
/// pairs UNRESOLVED(too_few), of none UNRESOLVED(no_pairs). More than 25 % discarded:
/// UNRESOLVED(noisy).
std::vector<Verdict> time_verdicts(const std::vector<Pair>& pairs, const Design& design);

}  // namespace assay::evidence
