// Engine: moves the calls of all groups of a rank on, and sleeps when none can move.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "channel.h"

namespace assay::comm {

/// A rank that waits in one group still serves the others: without that, groups that overlap could
/// wait for each other in a circle.
class Engine {
 public:
  explicit Engine(int64_t spin_ns);

  const SharedMemory& doorbell() const { return bell_; }
  void add(const std::shared_ptr<Channel>& channel) { channels_.push_back(channel); }

  /// Progresses until `stop` says so or `wait_ns` is over; true if it said so. Sleeps after a short
  /// spin; `on_idle` runs after each sleep of at most kNap without any ring.
  bool run_until(const std::function<bool()>& stop, int64_t wait_ns,
                 const std::function<void()>& on_idle);

 private:
  bool progress();
  bool spin(const std::function<bool()>& stop, int64_t deadline_ns);
  Doorbell& bell() const { return *reinterpret_cast<Doorbell*>(bell_.data()); }

  static constexpr int64_t kNap = 20'000'000;  ///< ns; a dead peer is noticed after this long

  const int64_t spin_ns_;
  SharedMemory bell_;
  std::vector<std::weak_ptr<Channel>> channels_;
};

}  // namespace assay::comm
