// Subprocess: runs a program to its end, with its output and a limit of time.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace assay {

struct ProcessResult {
  int exit_code = -1;  ///< -1 if a signal ended it
  int signal = 0;
  bool timed_out = false;  ///< then it was killed with its process group
  std::string out{}, err{};

  bool ok() const { return exit_code == 0; }
  std::string ending() const;  ///< "exit code 3", "SIGSEGV", "no end within 60 s"
};

/// Runs `command[0]` (a path) in its own process group. `environment` is added to this process's.
/// Throws Error if it cannot be started.
ProcessResult run_process(const std::vector<std::string>& command, double limit_s,
                          const std::map<std::string, std::string>& environment = {});

}  // namespace assay
