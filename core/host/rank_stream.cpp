// Asynchronous reads of a rank's pipes.
#include "core/host/rank_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "assay/error.h"

namespace assay::host {
namespace {

constexpr size_t kBlockBytes = 64 * 1024;
constexpr size_t kDrainBlocks = 16;
constexpr size_t kTailBytes = 4096;
constexpr size_t kEventLineBytes = 64 * 1024;

}  // namespace

PipeReader::PipeReader(boost::asio::io_context& io, OnData on_data)
    : stream_(io), on_data_(std::move(on_data)), block_(kBlockBytes, '\0') {}

UniqueFd PipeReader::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw InfrastructureError(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  stream_.assign(ends[0]);
  stream_.non_blocking(true);
  wait();
  return UniqueFd(ends[1]);
}

void PipeReader::wait() {
  stream_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
                       if (error || alive.expired() || !stream_.is_open()) return;
                       if (read_block(stream_.native_handle()) == Pipe::ended) {
                         stream_.close();
                       } else {
                         wait();
                       }
                     });
}

PipeReader::Pipe PipeReader::read_block(int fd) {
  const ssize_t n = ::read(fd, block_.data(), block_.size());
  if (n > 0) {
    on_data_(std::string_view(block_).substr(0, static_cast<size_t>(n)));
    return Pipe::more;
  }
  return n < 0 && (errno == EAGAIN || errno == EINTR) ? Pipe::empty : Pipe::ended;
}

void PipeReader::drain() {
  if (!stream_.is_open()) return;
  const UniqueFd fd(stream_.release());
  // A grandchild that prints for ever must not keep us here: a pipe holds 64 KiB, or 1 MiB at most.
  for (size_t blocks = 0; blocks < kDrainBlocks && read_block(fd.get()) == Pipe::more; ++blocks) {
  }
}

RankStreams::RankStreams(boost::asio::io_context& io, const std::filesystem::path& log_file,
                         OnEvent on_event, std::function<void(const std::string&)> on_error)
    : log_(log_file),
      on_event_(std::move(on_event)),
      on_error_(std::move(on_error)),
      out_(io, [this](std::string_view bytes) { append(bytes); }),
      err_(io,
           [this](std::string_view bytes) {
             append(bytes);
             stderr_tail_.append(bytes);
             if (stderr_tail_.size() > kTailBytes) {
               stderr_tail_.erase(0, stderr_tail_.size() - kTailBytes);
             }
           }),
      events_(io, [this](std::string_view bytes) { take_events(bytes); }) {}

void RankStreams::append(std::string_view bytes) {
  try {
    log_.append(bytes);
  } catch (const InfrastructureError& e) {
    on_error_(e.what());
  }
}

void RankStreams::take_events(std::string_view bytes) {
  event_bytes_.append(bytes);
  size_t start = 0;
  for (size_t end; (end = event_bytes_.find('\n', start)) != std::string::npos; start = end + 1) {
    const auto event = nlohmann::json::parse(event_bytes_.begin() + static_cast<long>(start),
                                             event_bytes_.begin() + static_cast<long>(end), nullptr,
                                             /*allow_exceptions=*/false);
    if (event.is_object() && event.value("e", nlohmann::json()).is_string()) on_event_(event);
  }
  event_bytes_.erase(0, start);
  if (event_bytes_.size() > kEventLineBytes) event_bytes_.clear();
}

void RankStreams::finish() {
  out_.drain();
  err_.drain();
  events_.drain();
  try {
    log_.finish();
  } catch (const InfrastructureError& e) {
    on_error_(e.what());
  }
}

}  // namespace assay::host
