// Work::Call: one collective under way, its backend operation and its clock.
#pragma once

#include <memory>

#include "core/comm/ledger.h"

namespace assay {

struct Work::Call {
  std::unique_ptr<Operation> operation;
  std::shared_ptr<Communicator::Ledger> ledger;
  size_t row = 0;
  int64_t timeout_ns = 0;
  double started_s = 0;
  double exposed_s = 0;
  bool finished = false;

  /// Advances the operation; `wait_ns` as Operation::advance takes it. Faults close the group.
  bool advance(int64_t wait_ns);
  [[noreturn]] void fail(const PeerFault& fault);

 private:
  void finish();
};

}  // namespace assay
