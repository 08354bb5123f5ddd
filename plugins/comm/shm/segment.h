// Segment: the memory that one rank shares with the others of a group, and its layout.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "assay/communicator.h"
#include "shared_memory.h"

namespace assay::comm {

/// What a call looks like to the peers; equal on all ranks or the call is refused.
struct Signature {
  uint64_t sequence = 0;
  int64_t elements = 0;  ///< 0 where sizes may differ (all_to_all)
  uint8_t op = 0;
  uint8_t reduce = 0;
  int8_t dtype = 0;
  uint8_t more = 0;   ///< messages only: another frame follows
  int32_t peer = -1;  ///< root of a broadcast
  bool operator==(const Signature&) const = default;
};

Signature signature_of(const Communicator::Request& request);
std::string describe(const Signature& signature);  ///< "all_reduce(sum) #7 of 12 x fp32"

/// Sizes of a segment; equal on all ranks.
struct Layout {
  int ranks = 0;
  int64_t slots = 0;
  int64_t slot_bytes = 0;     ///< multiple of 64
  int64_t mailbox_bytes = 0;  ///< per destination, multiple of 64

  size_t slots_offset() const;
  size_t mailbox_offset(int destination) const;
  size_t total_bytes() const;
};

/// Counters of a rank, each written by it alone. A chunk is one round of a collective; chunks are
/// numbered over the life of the group, equally on all ranks.
struct alignas(64) Progress {
  alignas(64) std::atomic<uint64_t> published;  ///< chunks whose data peers may read
  alignas(64) std::atomic<uint64_t> done;       ///< chunks whose peers' data is no longer needed
  alignas(64) std::atomic<uint64_t> last_call;  ///< sequence << 8 | op, for error texts
};

/// A pair of ranks. `sent` counts bytes that the owner put into its mailbox for the peer, `taken`
/// bytes that the owner took out of the peer's mailbox for it.
struct alignas(64) MailCounters {
  alignas(64) std::atomic<uint64_t> sent;
  alignas(64) std::atomic<uint64_t> taken;
};

class Segment {
 public:
  Segment(SharedMemory memory, const Layout& layout)
      : memory_(std::move(memory)), layout_(layout) {}
  static SharedMemory make(const Layout& layout);

  int fd() const { return memory_.fd(); }
  Progress& progress() const { return *reinterpret_cast<Progress*>(memory_.data()); }
  MailCounters& mail(int peer) const;
  Signature& signature(uint64_t chunk) const;
  std::byte* slot(uint64_t chunk) const;
  std::byte* mailbox(int destination) const {
    return memory_.data() + layout_.mailbox_offset(destination);
  }

 private:
  SharedMemory memory_;
  Layout layout_;
};

}  // namespace assay::comm
