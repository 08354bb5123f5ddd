// comm/gloo: the gloo library that ships inside LibTorch, over TCP; the yardstick of comm/shm and a
// way across hosts.
#pragma once

#include <map>
#include <memory>

#include "assay/communicator.h"
#include "assay/options.h"

namespace assay::comm {

struct GlooOptions {
  std::string address = "127.0.0.1";
  int64_t threads = 2;

  static void declare(OptionTable<GlooOptions>& t) {
    using enum Affects;
    t.add(&GlooOptions::address, "address", speed,
          "host name or address that this rank listens on");
    t.add(&GlooOptions::threads, "threads", speed, {1, 64}, "threads that run calls under way");
  }
};

/// Through c10d::ProcessGroupGloo; ranks meet in a file of the rendezvous folder.
///
/// Deviations: sums are in gloo's own order (equal on all ranks, within rounding of the rank
/// order); int16 and 8-bit floats move but do not reduce; poll() of a message blocks. Dead and
/// stalled ranks are named when they run on this machine.
class GlooBackend final : public CommBackend {
 public:
  using Options = GlooOptions;
  explicit GlooBackend(const Options& options) : options_(options) {}
  std::shared_ptr<Communicator> connect(const GroupSpec& spec) override;

 private:
  const Options options_;
  std::map<std::string, uint64_t> generations_;  ///< groups made so far, by key
};

}  // namespace assay::comm
