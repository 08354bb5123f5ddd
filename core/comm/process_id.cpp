// Whether a process still runs: its number and its start must both agree.
#include "assay/process_id.h"

#include <unistd.h>

#include "core/base/process_stat.h"

namespace assay {

ProcessId ProcessId::self() {
  return {.pid = getpid(), .start = static_cast<uint64_t>(process_stat(getpid()).start)};
}

bool ProcessId::alive() const {
  const ProcessStat stat = process_stat(pid);
  return static_cast<uint64_t>(stat.start) == start && stat.runs();
}

}  // namespace assay
