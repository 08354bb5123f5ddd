// The two futex calls.
#include "doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace assay::comm {

void Doorbell::sleep(uint32_t ticket, int64_t nanoseconds) {
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec limit{.tv_sec = nanoseconds / kSecond, .tv_nsec = nanoseconds % kSecond};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&bell_), FUTEX_WAIT, ticket, &limit, nullptr, 0);
}

void Doorbell::ring_slowly() {
  bell_.fetch_add(1, std::memory_order_relaxed);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&bell_), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace assay::comm
