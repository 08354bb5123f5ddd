// EventPipe: a rank's signs of life to its supervisor, JSON lines on a pipe. Needs no LibTorch.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <thread>

namespace assay::worker {

/// Writes whole lines and never waits: a full pipe or a missing supervisor drops the line.
/// Any thread may call. fd < 0: nobody listens.
class EventPipe {
 public:
  explicit EventPipe(int fd);

  void alive();
  void phase(std::string_view phase);  ///< load build data init step eval done
  void progress(int64_t step, int64_t steps, double tokens_per_s, double loss,
                int64_t allocated_bytes);
  void error(const std::string& component, const std::string& message);  ///< empty = unknown

 private:
  void send(const nlohmann::json& event);
  const int fd_;
};

/// Says `alive` every second from its own thread, and runs `chore` as often.
class Heartbeat {
 public:
  Heartbeat(EventPipe& pipe, std::function<void()> chore);
  ~Heartbeat();

 private:
  void loop();
  EventPipe& pipe_;
  const std::function<void()> chore_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace assay::worker
