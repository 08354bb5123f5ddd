// The supervisor's start and end: who else works here, what is to be run, and the exit code.
#include "core/host/supervisor.h"

#include "core/host/loop.h"

namespace assay::host {

Supervisor::Supervisor(store::Store& store, SupervisorOptions options, Observer& observer)
    : loop_(std::make_unique<Loop>(store, std::move(options), observer)) {}

Supervisor::~Supervisor() = default;

SupervisorResult Supervisor::run() {
  loop_->prepare();
  loop_->run();
  return loop_->finish();
}

}  // namespace assay::host
