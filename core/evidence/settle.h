// settle: what the supervisor calls when a worker ended well and its spools are imported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/store/store.h"

namespace assay::evidence {

/// A promise of every run that this one broke; makes its state `invalid`.
struct Violation {
  std::string invariant;  ///< "loss.finite", "loss.ranks", "tokens", "steps", "spool"
  std::string text;       ///< "the loss is nan at step 7 (rank 0)"
};

struct Settled {
  std::vector<Violation> violations{};
  std::vector<store::Metric> metrics{};  ///< stored, rank -1; docs/metrics.md
};

/// Finds the steady steps, derives the figures of the attempt and stores both, then checks the
/// invariants. May be called again: figures are replaced. A figure that cannot be measured has no
/// row. Untimed and resumed attempts get none in seconds or per second.
Settled settle(store::Store& store, int64_t attempt_id);

}  // namespace assay::evidence
