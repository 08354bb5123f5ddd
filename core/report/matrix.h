// Matrix: the swept axes of a study, what stands where on them, and the points that became no cell.
#pragma once

#include <string>
#include <vector>

#include "core/report/load.h"
#include "core/report/model.h"

namespace assay::report {

/// Swept keys in the order in which slugs have them, without `seed`; by name where no slug tells.
std::vector<std::string> axes_of(const std::vector<CellRow>& cells);

/// Labels of a recipe's cells on the axes; "" where its cells differ or have no such axis.
std::vector<std::string> labels_of(const std::vector<const CellRow*>& cells,
                                   const std::vector<std::string>& axes);

/// Skipped points with rule and reason; placed on the axes where their slug has one part for each.
std::vector<Hole> load_holes(const store::Reader& reader, int64_t study_id,
                             const std::vector<CellRow>& cells,
                             const std::vector<std::string>& axes);

}  // namespace assay::report
