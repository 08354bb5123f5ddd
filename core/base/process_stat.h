// process_stat: what /proc/PID/stat says of a process, for every part that asks whether one lives.
#pragma once

#include <cstdint>

namespace assay {

struct ProcessStat {
  char state = 'X';   ///< field 3; 'X' also where there is no such process
  int64_t start = 0;  ///< field 22, clock ticks since boot
  /// False once it ended, waited for by its parent or not.
  bool runs() const { return state != 'Z' && state != 'X'; }
};

/// Never throws: a process that ends while it is read is one that does not exist.
ProcessStat process_stat(int pid);

}  // namespace assay
