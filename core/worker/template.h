// Template process: a warmed-up parent that forks one child per rank. Needs no LibTorch.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace assay::worker {

/// What a template does besides forking.
struct TemplateHooks {
  /// Loads libraries and plugins; runs once, must leave no thread behind. Throws Error.
  std::function<void(const nlohmann::json& plugins)> load{};
  /// Runs before every fork: lets go of what a child must not inherit (OpenMP teams).
  std::function<void()> before_fork{};
  /// Runs in the child, which is a session leader with stdout, stderr and `events_fd` in place;
  /// its result is the exit code.
  std::function<int(const nlohmann::json& cell, int rank, int events_fd)> child{};
};

/// Serves one supervisor over a SOCK_SEQPACKET socket until it closes; the exit code.
///
///   <- {"load":{"plugins":[paths]}}                         -> {"loaded":{}} or {"error":text}
///   <- {"spawn":{"id":7,"cell":path,"rank":0}} + 3 descriptors (stdout, stderr, events)
///                                           -> {"spawned":{"id":7,"pid":..}} or
///                                           {"refused":{"id","reason"}}
///                                           -> {"exited":{"id":7,"pid":..,"status":wait status}}
///
/// Children get PDEATHSIG SIGKILL, so they never outlive the template, nor it its supervisor.
/// A parent with more than one thread refuses to fork: the child would hang on a lost lock.
int serve_template(int socket, const TemplateHooks& hooks);

}  // namespace assay::worker
