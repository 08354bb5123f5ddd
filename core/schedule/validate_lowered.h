// Rules of what lowering adds: transfers, reductions, unsharding.
#pragma once

#include "core/schedule/validate.h"

namespace assay {

/// Adds problems to `check`, whose compute actions are known to be complete.
void check_lowered(const std::vector<ActionList>& lists, ScheduleCheck& check);

}  // namespace assay
