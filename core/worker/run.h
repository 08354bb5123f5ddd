// One rank of one cell, in this process.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace assay::worker {

/// Confines the process, trains, leaves a closed spool; the exit code
/// (core/base/worker_protocol.h). Plugins are loaded here unless a template has done so. events_fd
/// < 0: no supervisor listens.
int run_rank(const nlohmann::json& cell, int rank, int events_fd);

/// Loads LibTorch's and the plugins' libraries for run_rank(); starts no thread.
void load_for_fork(const nlohmann::json& plugins);

/// Ends OpenMP teams, which a forked child would wait for in vain.
void release_thread_pools();

}  // namespace assay::worker
