// Virtual time: how long a step of a pipeline would take if every rank had a core of its own.
#pragma once

#include <vector>

#include "assay/api.h"
#include "core/train/assemble.h"

namespace assay::train {

/// Seconds: the makespan of the schedule when each action takes the thread-CPU time that its rank
/// measured in this step (`action_cpu_s`, in the order of its list) and transfers take none.
/// Unshard, reduce and transfer actions count to the forward or backward after them. With more
/// ranks than cores wall time says nothing of a schedule; this is no wall time and never mixed with
/// it. Collective over pp, phase control.
ASSAY_API double virtual_step_s(Assembly& assembly, const std::vector<double>& action_cpu_s);

}  // namespace assay::train
