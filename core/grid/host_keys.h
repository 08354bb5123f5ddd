// Host keys: the configuration keys that belong to assay itself and not to a plugin.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "assay/options.h"

namespace assay::grid {

inline constexpr std::array<std::string_view, 6> kMeshDims{"dp_replicate", "dp_shard", "cp",
                                                           "tp",           "pp",       "ep"};

/// Keys of a cell, by full name, sorted: mesh.*, optim.lr, seed, train.*.
const std::vector<OptionSpec>& host_keys();

/// Execution keys, without "run.": timeout, step_timeout, retries, devices, memory_limit, timed.
const std::vector<OptionSpec>& run_keys();

/// Null when there is none of that name.
const OptionSpec* find_key(const std::vector<OptionSpec>& specs, std::string_view name);

}  // namespace assay::grid
