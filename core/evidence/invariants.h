// Invariants: what every run that ended well has kept; else it is `invalid` and in no average.
#pragma once

#include <vector>

#include "core/evidence/attempt.h"
#include "core/evidence/settle.h"

namespace assay::evidence {

/// spool: every rank's file closed, rows declared = rows imported.
/// steps, tokens: planned steps on every rank, each of global_batch * seq_len tokens.
/// loss.finite: every train and evaluation loss. loss.ranks: equal bits of loss and norm.
/// mfu: in (0, 1] where it is known.
std::vector<Violation> broken_invariants(const store::Store& store, const Attempt& attempt);

}  // namespace assay::evidence
