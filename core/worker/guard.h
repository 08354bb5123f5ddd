// guarded: turns whatever a rank throws into an error event, a message and an exit code.
#pragma once

#include <functional>
#include <stdexcept>

#include "core/worker/events.h"

namespace assay::worker {

/// For allocators whose own exception type this file does not know.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs `body`; 0, or 12 for exhausted memory (bad_alloc, OutOfMemory, an allocator's words), 13
/// for InvalidRun, 14 for InfrastructureError, 1 for anything else. The message goes to stderr and
/// the supervisor.
int guarded(EventPipe& events, const std::function<void()>& body);

/// The word of an exit code: ok, oom, invalid, infra, fail.
const char* outcome_name(int exit_code);

}  // namespace assay::worker
