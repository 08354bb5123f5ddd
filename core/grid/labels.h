// Labels of picks as slugs: folder-safe, short, in axis order.
#pragma once

#include <string>
#include <vector>

#include "core/grid/expand.h"

namespace assay::grid {

/// Labels joined by '_' over [a-z0-9.-], at most 80 bytes; `otherwise` when there are none.
std::string slug_of(std::vector<Pick> picks, const std::string& otherwise);

}  // namespace assay::grid
