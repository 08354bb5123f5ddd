// This machine as the database knows it: cores, memory, and the env row with its ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/store/rows.h"

namespace assay::host {

/// One logical CPU per physical core that this process may use, ascending.
std::vector<int> physical_cores();

/// "0-2,5" -> 0 1 2 5, as the kernel prints CPU lists; what is no number is left out.
std::vector<int> parse_cpu_list(const std::string& list);

/// Memory that processes here can use: the machine's, or the control group's limit if smaller.
int64_t usable_memory_bytes();

/// How often the OOM killer struck in this process's control group (version 1 or 2); -1 = unknown.
int64_t oom_kills();

/// env_id hashes everything; machine_id what decides timings: CPU model and count, memory in GiB,
/// clock policy, LibTorch. Host name, kernel and free memory are in no machine_id.
store::Env this_env(const std::string& libtorch_version);

}  // namespace assay::host
