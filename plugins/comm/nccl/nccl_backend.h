// comm/nccl: NVIDIA's collectives on GPUs, through c10d::ProcessGroupNCCL.
#pragma once

#include <map>
#include <memory>

#include "assay/communicator.h"
#include "assay/options.h"

namespace assay::comm {

struct NcclOptions {
  bool high_priority = true;

  static void declare(OptionTable<NcclOptions>& t) {
    t.add(&NcclOptions::high_priority, "high_priority", Affects::speed, {},
          "collectives run on a stream of high priority");
  }
};

/// One rank per GPU. Work::wait() makes the current stream wait, not the host, so exposed seconds
/// are those of launching; a call that fails or runs into the time-out is reported by the next one.
///
/// Deviations: sums are in NCCL's own order; int16 and 8-bit floats move but do not reduce.
class NcclBackend final : public CommBackend {
 public:
  using Options = NcclOptions;
  explicit NcclBackend(const Options& options) : options_(options) {}
  /// Throws Error when this machine shows no GPU, or too few for this rank's device.
  std::shared_ptr<Communicator> connect(const GroupSpec& spec) override;

 private:
  const Options options_;
  std::map<std::string, uint64_t> generations_;  ///< groups made so far, by key
};

}  // namespace assay::comm
