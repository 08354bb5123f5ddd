// Events as single atomic writes, and the heartbeat thread.
#include "core/worker/events.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

namespace assay::worker {
namespace {

constexpr size_t kAtomicBytes = 4096;  // PIPE_BUF: a shorter write is never torn
constexpr size_t kMessageBytes = 3000;
constexpr auto kBeat = std::chrono::seconds(1);

nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

}  // namespace

EventPipe::EventPipe(int fd) : fd_(fd) {
  if (fd_ >= 0) fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
}

void EventPipe::send(const nlohmann::json& event) {
  if (fd_ < 0) return;
  std::string line = event.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  line += '\n';
  if (line.size() > kAtomicBytes) return;
  [[maybe_unused]] const ssize_t sent = write(fd_, line.data(), line.size());
}

void EventPipe::alive() { send({{"e", "alive"}}); }

void EventPipe::phase(std::string_view phase) { send({{"e", "phase"}, {"phase", phase}}); }

void EventPipe::progress(int64_t step, int64_t steps, double tokens_per_s, double loss,
                         int64_t allocated_bytes) {
  send({{"e", "progress"},
        {"step", step},
        {"steps", steps},
        {"tokens_per_s", number(tokens_per_s)},
        {"loss", number(loss)},
        {"allocated_bytes", allocated_bytes}});
}

void EventPipe::error(const std::string& component, const std::string& message) {
  send({{"e", "error"},
        {"component", component.empty() ? nlohmann::json(nullptr) : nlohmann::json(component)},
        {"message", message.substr(0, kMessageBytes)}});
}

Heartbeat::Heartbeat(EventPipe& pipe, std::function<void()> chore)
    : pipe_(pipe), chore_(std::move(chore)) {
  sigset_t all, before;  // signals belong to the main thread
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { loop(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Heartbeat::loop() {
  std::unique_lock lock(mutex_);
  do {
    pipe_.alive();
    try {
      if (chore_) chore_();
    } catch (const std::exception&) {
      continue;  // a full disk: the rank's next row meets it too, where it can be told
    }
  } while (!wake_.wait_for(lock, kBeat, [this] { return stop_; }));
}

}  // namespace assay::worker
