// Spin shortly, then sleep on the own doorbell.
#include "engine.h"

#include <algorithm>
#include <chrono>

namespace assay::comm {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Engine::Engine(int64_t spin_ns)
    : spin_ns_(spin_ns), bell_(SharedMemory::create("assay-doorbell", sizeof(Doorbell))) {}

bool Engine::progress() {
  bool moved = false;
  for (auto entry = channels_.begin(); entry != channels_.end();) {
    const std::shared_ptr<Channel> channel = entry->lock();
    if (!channel) {
      entry = channels_.erase(entry);
      continue;
    }
    if (!channel->idle()) moved |= channel->progress();
    ++entry;
  }
  return moved;
}

/// True when `stop` said so; progress restarts the spin.
bool Engine::spin(const std::function<bool()>& stop, int64_t deadline_ns) {
  int64_t until = std::min(deadline_ns, now_ns() + spin_ns_);
  do {
    if (progress()) until = std::min(deadline_ns, now_ns() + spin_ns_);
    if (stop()) return true;
    __builtin_ia32_pause();
  } while (now_ns() < until);
  return false;
}

bool Engine::run_until(const std::function<bool()>& stop, int64_t wait_ns,
                       const std::function<void()>& on_idle) {
  progress();
  if (stop()) return true;
  if (wait_ns <= 0) return false;
  const int64_t now = now_ns();
  const int64_t deadline = wait_ns > INT64_MAX - now ? INT64_MAX : now + wait_ns;
  while (!spin(stop, deadline)) {
    const int64_t left = deadline - now_ns();
    if (left <= 0) return false;
    const uint32_t ticket = bell().announce();
    const bool moved = progress();
    const bool stopped = stop();
    const int64_t begin = now_ns();
    if (!moved && !stopped) bell().sleep(ticket, std::min(left, kNap));
    bell().wake();
    if (stopped) return true;
    if (now_ns() - begin >= kNap) on_idle();
  }
  return true;
}

}  // namespace assay::comm
