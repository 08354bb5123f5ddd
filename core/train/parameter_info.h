// What an optimizer may know of a parameter, from what a rank holds of it.
#pragma once

#include "assay/precision.h"
#include "assay/rank_context.h"

namespace assay::train {

inline ParameterInfo info_of(const Parameter& p, const Dtypes& dtypes) {
  return {p.spec.name, p.spec.shape, p.spec.axes, p.spec.role, p.stored.box().size, dtypes.param};
}

}  // namespace assay::train
