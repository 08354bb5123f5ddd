// Figures that should not scatter (bytes, counts, FLOPs): compared as they are.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/evidence/verdict.h"

namespace assay::evidence {

/// A deterministic figure, its tolerance as a share of the baseline; more is worse.
struct Proxy {
  std::string metric{};
  double tolerance = 0;
};

/// wire_bytes, payload_bytes, collectives, op counts, flops_per_token, saved_activation_bytes: any
/// increase counts; peak_allocated_bytes: beyond 0.5 %.
const std::vector<Proxy>& proxies();

/// The figure's name in `metrics`: facts of a worker carry "fact.".
std::string stored_name(const std::string& metric);

/// exact.v1: the largest value of either side. WORSE or BETTER when the candidate differs by more
/// than the tolerance and the ranges of the two sides do not meet; SAME within it; UNRESOLVED
/// (varies) when the ranges meet, (not_measured) when a side has no value.
Verdict judge_exact(const Proxy& proxy, std::span<const double> base,
                    std::span<const double> candidate);

}  // namespace assay::evidence
