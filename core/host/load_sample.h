// LoadSample: counters of the machine before and after a run, from which its quality follows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/store/rows.h"

namespace assay::host {

/// Counters of the kernel at one moment; nothing = not exposed here.
struct LoadSample {
  std::optional<double> steal_ticks{}, cpu_ticks{};  ///< of all CPUs since boot
  std::optional<double> pressure_us{};               ///< some task waited for a CPU, since boot
  std::optional<double> clock_hz{};                  ///< median over cores, now
  double at_s = 0;                                   ///< monotonic
};

/// `root` is "/" but in tests.
LoadSample sample_load(const std::filesystem::path& root = "/");

/// What happened between two samples (machine.v1): steal_share of CPU time, cpu_pressure_share of
/// wall time, clock_hz as the mean of both. Only what both samples have.
std::vector<store::Metric> load_figures(const LoadSample& before, const LoadSample& after);

}  // namespace assay::host
