// RankStreams: what one rank says - stdout and stderr into its log, events as calls.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/unique_fd.h"
#include "core/host/log_file.h"

namespace assay::host {

/// One pipe, read as it fills; `on_data` gets every block.
class PipeReader {
 public:
  using OnData = std::function<void(std::string_view)>;
  PipeReader(boost::asio::io_context& io, OnData on_data);

  UniqueFd open();  ///< makes the pipe, starts reading, gives the end to write to
  void drain();     ///< reads what is there now, then closes; a grandchild may still hold the pipe

 private:
  void wait();
  enum class Pipe { more, empty, ended };
  Pipe read_block(int fd);

  boost::asio::posix::stream_descriptor stream_;
  OnData on_data_;
  std::string block_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< for handlers that come late
};

/// The three pipes of a rank. Events that are no JSON object with an "e" are ignored: a plugin may
/// have written to any descriptor.
class RankStreams {
 public:
  using OnEvent = std::function<void(const nlohmann::json&)>;
  RankStreams(boost::asio::io_context& io, const std::filesystem::path& log_file, OnEvent on_event,
              std::function<void(const std::string&)> on_error);

  PipeReader& out() { return out_; }
  PipeReader& err() { return err_; }
  PipeReader& events() { return events_; }

  void finish();  ///< drains all pipes and puts the log in order
  const LogFile& log() const { return log_; }
  const std::string& stderr_tail() const { return stderr_tail_; }  ///< at most 4 KiB

 private:
  void append(std::string_view bytes);
  void take_events(std::string_view bytes);

  LogFile log_;
  OnEvent on_event_;
  std::function<void(const std::string&)> on_error_;
  std::string stderr_tail_, event_bytes_;
  PipeReader out_, err_, events_;
};

}  // namespace assay::host
