// The quality filter: which pairs were measured on a machine that was quiet on both sides.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/evidence/verdict.h"

namespace assay::evidence {

/// What the machine did during one run. Nothing = not recorded: no condition can fail on it.
struct Quality {
  std::optional<double> steal_share{};           ///< of CPU time
  std::optional<double> pressure_share{};        ///< of wall time with some task waiting for a CPU
  std::optional<double> involuntary_switches{};  ///< over all ranks
  std::optional<double> clock_hz{};              ///< median
  std::optional<double> throttled_share{};       ///< of samples with a throttle reason set
  int64_t started_us = 0, ended_us = 0;          ///< of the attempt
};

/// Fixed before any ratio is looked at; stored in design_json.
struct QualityLimits {
  double steal_share = 0.02;
  double pressure_share = 0.20;
  double switches_factor = 5;  ///< x the median of the first two control pairs
  double switches_floor = 50;  ///< fewer are always usual: short runs have a handful
  double clock_share = 0.01;
  double throttled_share = 0.01;
  double gap_s = 30;  ///< between the two runs of a pair: later is not back to back
};
inline constexpr double kMostDiscarded = 0.25;  ///< more of a block's pairs: UNRESOLVED(noisy)

nlohmann::json to_json(const QualityLimits& limits);
nlohmann::json to_json(const Quality& quality);

/// Why the pair is discarded, empty if it is kept. `usual_switches`: median over the runs of the
/// first two control pairs; nothing leaves that condition out.
std::string discard_reason(const Quality& a, const Quality& b, const QualityLimits& limits,
                           std::optional<double> usual_switches);

/// Median of the involuntary switches of runs that have them.
std::optional<double> usual_switches(std::span<const Quality> runs);

}  // namespace assay::evidence
