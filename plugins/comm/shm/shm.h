// comm/shm: ranks are processes of one machine and read each other's buffers in shared memory.
#pragma once

#include <map>
#include <memory>

#include "assay/communicator.h"
#include "assay/options.h"

namespace assay::comm {

struct ShmOptions {
  Bytes chunk{128 << 10};
  int64_t slots = 8;
  Bytes mailbox{16 << 20};
  Duration spin{30'000};

  static void declare(OptionTable<ShmOptions>& t) {
    using enum Affects;
    t.add(&ShmOptions::chunk, "chunk", speed, {16 << 10, 64 << 20}, "bytes of one round");
    t.add(&ShmOptions::slots, "slots", speed, {2, 1024}, "rounds that a rank may be ahead");
    t.add(&ShmOptions::mailbox, "mailbox", memory, {64 << 10, 1 << 30},
          "bytes per pair of ranks that send() buffers before it needs the receiver");
    t.add(&ShmOptions::spin, "spin", speed, {0, 1e9}, "time to poll before sleeping on a futex");
  }
};

class Engine;

/// Collectives over memfd pages (nothing has a name, nothing is left behind). Each rank copies its
/// input into its own slots; the others read them there: no second copy, no ring steps. Progress
/// happens inside calls, poll() and wait(); messages up to `mailbox` leave at once.
///
/// Dead peers are noticed within 20 ms of waiting, by process number and start time.
class ShmBackend final : public CommBackend {
 public:
  using Options = ShmOptions;
  explicit ShmBackend(const Options& options);
  ~ShmBackend() override;
  std::shared_ptr<Communicator> connect(const GroupSpec& spec) override;

 private:
  const Options options_;
  const std::shared_ptr<Engine> engine_;
  std::map<std::string, uint64_t> generations_;  ///< groups made so far, by key
};

}  // namespace assay::comm
