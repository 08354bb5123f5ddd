// combine: what a collective writes, computed from the inputs of all ranks with plain ATen.
#pragma once

#include "board.h"

namespace assay::comm {

/// Writes `request.out`; `inputs` in rank order. Reductions add in that order in fp32 (fp64 for
/// fp64) and round once.
void combine(const Communicator::Request& request, int rank, const std::vector<Posted>& inputs);

}  // namespace assay::comm
