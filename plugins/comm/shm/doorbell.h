// Doorbell: one futex per rank, rung by peers that made progress while the rank sleeps.
#pragma once

#include <atomic>
#include <cstdint>

namespace assay::comm {

/// Lives in zeroed shared memory.
///
/// Sleeper: announce(); look for work once more; sleep() with the ticket; wake().
/// Ringer:  publish the work (store), then ring(). The two full fences make one of them see the
///          other, so no ring is lost.
class Doorbell {
 public:
  uint32_t announce() {
    asleep_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return bell_.load(std::memory_order_relaxed);
  }
  void sleep(uint32_t ticket, int64_t nanoseconds);
  void wake() { asleep_.store(0, std::memory_order_relaxed); }

  void ring() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_relaxed) != 0) ring_slowly();
  }

 private:
  void ring_slowly();

  alignas(64) std::atomic<uint32_t> bell_;
  std::atomic<uint32_t> asleep_;
};

static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace assay::comm
