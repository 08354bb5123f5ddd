// ChildWatcher: tells when a child of this process ends; reaps only the children it was told of.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <map>

namespace assay::host {

class ChildWatcher {
 public:
  using OnExit = std::function<void(int wait_status)>;
  explicit ChildWatcher(boost::asio::io_context& io);

  /// `on_exit` runs from the loop, also when the child has ended before the call.
  void watch(pid_t pid, OnExit on_exit);
  void stop();  ///< lets the loop run out of work; children that live are no longer watched

 private:
  void wait();
  void reap();

  boost::asio::io_context& io_;
  boost::asio::signal_set signals_;
  std::map<pid_t, OnExit> children_;
  bool stopped_ = false;  ///< a signal may be on its way when the wait is cancelled
};

}  // namespace assay::host
