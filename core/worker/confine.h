// Confinement of a worker before any plugin code runs: memory, cores, and stacks on a crash.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace assay::worker {

/// The cores of one rank: its share of the cell's, at least one (shared when there are too few).
std::vector<int> rank_cores(const std::vector<int>& cores, int rank, int world);

/// Limits this process as the cell says. `memory_ceiling_bytes` becomes RLIMIT_DATA, private
/// writable memory: exact between polls, gives the allocator an error it can report, needs no
/// cgroup of one's own, and leaves out mapped library text and shared memory, which RLIMIT_AS would
/// count. The kernel's OOM killer is told to take workers first, never the supervisor.
void confine(const nlohmann::json& cell, int rank);

/// SIGQUIT and fatal signals print the stack to stderr; the fatal ones then kill as before.
void print_stacks_on_signals();

}  // namespace assay::worker
