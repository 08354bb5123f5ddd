// Expansion: the blocks of a grid as points, in order, before anything is known of their values.
#pragma once

#include <cstdint>
#include <vector>

#include "core/grid/study.h"

namespace assay::grid {

struct Pick {
  const Axis* axis = nullptr;
  const AxisPoint* point = nullptr;
};

/// One point of the grid: the values it picks and the blocks it lies in, outermost first.
struct Draft {
  std::vector<Pick> picks{};
  std::vector<const Block*> blocks{};
};

/// Number of points, saturated at the largest integer; G06 for a zip of unequal lengths, G05 for a
/// key that two parts of one product set.
int64_t count_points(const Block& block, Findings& findings);

/// Call only after count_points() found nothing wrong.
std::vector<Draft> expand(const Block& block);

}  // namespace assay::grid
