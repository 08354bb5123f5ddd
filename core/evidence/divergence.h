// Divergence: the first place where the digests of two runs part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace assay::evidence {

/// One digest of a traced run (train.trace): see core/train/trace.h for the points.
struct TraceDigest {
  int64_t step = 0;
  std::string point{};
  int64_t rank = 0;
  double sum = 0, squares = 0;
};

struct Divergence {
  int64_t step = 0;
  std::string point{};
  int64_t rank = -1;  ///< -1: summed over the ranks, because the layouts differ
  TraceDigest a{}, b{};
  double gap = 0;
};

struct TraceComparison {
  std::optional<Divergence> first{};
  double largest_gap = 0;  ///< of all points before it
  int64_t compared = 0;
  std::vector<std::string> one_sided{};  ///< points that only one of the runs has, each once
};

/// Walks steps, and in a step the order of computation: forward through the blocks (ops of a block
/// before its output), backward, gradients, weights. Digests of equal layouts are compared rank by
/// rank; else summed over ranks, in which points of level ops take no part.
///
/// Gap: max of |difference of sums| / sqrt(squares) and |difference of squares| / squares, squares
/// the larger of the two; a point parts when it is above `tolerance` or not a number on one side
/// only.
TraceComparison compare_traces(const std::vector<TraceDigest>& a, const std::vector<TraceDigest>& b,
                               bool same_layout, double tolerance);

}  // namespace assay::evidence
