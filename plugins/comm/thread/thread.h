// comm/thread: ranks are threads of one process. For unit tests and studies that fit one process.
#pragma once

#include <memory>

#include "assay/communicator.h"
#include "assay/options.h"

namespace assay::comm {

struct ThreadOptions {
  static void declare(OptionTable<ThreadOptions>&) {}
};

/// Every call posts a copy of its input on a board that the group shares and reads the copies of
/// the others when it is waited for, so a call never needs its peers to start. Groups find each
/// other by GroupSpec::rendezvous and key() within the process.
class ThreadBackend final : public CommBackend {
 public:
  using Options = ThreadOptions;
  explicit ThreadBackend(const Options&) {}
  std::shared_ptr<Communicator> connect(const GroupSpec& spec) override;
};

}  // namespace assay::comm
