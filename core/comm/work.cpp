// Waiting for a call: polls, bounded waits, the time-out and its error.
#include "core/comm/work.h"

#include "core/base/clock.h"

namespace assay {

void Work::Call::fail(const PeerFault& fault) {
  ledger->fault = fault;
  finished = true;
  operation.reset();
  throw_fault(fault);
}

void Work::Call::finish() {
  finished = true;
  operation.reset();  // lets go of the tensors
  ledger->add_seconds(row, monotonic_s() - started_s, exposed_s);
}

bool Work::Call::advance(int64_t wait_ns) {
  if (finished) return true;
  if (ledger->fault) fail(*ledger->fault);
  const double begin_s = monotonic_s();
  try {
    const bool done = operation->advance(wait_ns);
    exposed_s += monotonic_s() - begin_s;
    if (done) finish();
    return done;
  } catch (const PeerError& error) {
    fail(error.fault());
  } catch (const LostPeer& error) {
    fail(error.fault());
  }
}

bool Work::poll() { return !call_ || call_->advance(0); }

void Work::wait() {
  if (!call_) return;
  const double deadline_s = monotonic_s() + static_cast<double>(call_->timeout_ns) * 1e-9;
  for (double left_s = deadline_s - monotonic_s();
       !call_->advance(std::max<int64_t>(0, static_cast<int64_t>(left_s * 1e9)));
       left_s = deadline_s - monotonic_s()) {
    if (left_s <= 0) call_->fail(call_->operation->stalled());
  }
  call_.reset();
}

}  // namespace assay
