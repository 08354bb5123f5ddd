// ProcessId: a process that cannot be confused with a later one of the same number.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "assay/api.h"

namespace assay {

struct ASSAY_API ProcessId {
  pid_t pid = 0;
  uint64_t start = 0;  ///< field 22 of /proc/PID/stat, clock ticks since boot

  static ProcessId self();
  /// False once it ended, waited for by its parent or not.
  bool alive() const;
};

}  // namespace assay
