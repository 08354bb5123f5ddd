// Conditions on the two runs of a pair, in the order in which they are named.
#include "core/evidence/quality.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/store/quantile.h"

namespace assay::evidence {
namespace {

std::string percent(const char* what, double share, double limit) {
  char text[80];
  std::snprintf(text, sizeof text, "%s %.3g %% > %.3g %%", what, 100 * share, 100 * limit);
  return text;
}

std::optional<double> larger(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

nlohmann::json number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

nlohmann::json to_json(const QualityLimits& l) {
  return {{"steal_share", l.steal_share},
          {"pressure_share", l.pressure_share},
          {"switches_factor", l.switches_factor},
          {"switches_floor", l.switches_floor},
          {"clock_share", l.clock_share},
          {"throttled_share", l.throttled_share},
          {"gap_s", l.gap_s}};
}

nlohmann::json to_json(const Quality& q) {
  return {{"steal_share", number(q.steal_share)},
          {"pressure_share", number(q.pressure_share)},
          {"involuntary_switches", number(q.involuntary_switches)},
          {"clock_hz", number(q.clock_hz)},
          {"throttled_share", number(q.throttled_share)}};
}

std::string discard_reason(const Quality& a, const Quality& b, const QualityLimits& limits,
                           std::optional<double> usual) {
  const auto steal = larger(a.steal_share, b.steal_share);
  if (steal && *steal > limits.steal_share) return percent("steal", *steal, limits.steal_share);
  const auto pressure = larger(a.pressure_share, b.pressure_share);
  if (pressure && *pressure > limits.pressure_share) {
    return percent("CPU pressure", *pressure, limits.pressure_share);
  }
  const auto switches = larger(a.involuntary_switches, b.involuntary_switches);
  if (switches && usual &&
      *switches > std::max(limits.switches_factor * *usual, limits.switches_floor)) {
    char text[80];
    std::snprintf(text, sizeof text, "%.0f involuntary switches, usually %.0f", *switches, *usual);
    return text;
  }
  const auto throttled = larger(a.throttled_share, b.throttled_share);
  if (throttled && *throttled > limits.throttled_share) {
    return percent("throttled", *throttled, limits.throttled_share);
  }
  if (a.clock_hz && b.clock_hz) {
    const double change = std::abs(*b.clock_hz / *a.clock_hz - 1);
    if (change > limits.clock_share) return percent("clock change", change, limits.clock_share);
  }
  const int64_t gap_us = std::max(a.started_us, b.started_us) - std::min(a.ended_us, b.ended_us);
  if (static_cast<double>(gap_us) > 1e6 * limits.gap_s) return "not back to back";
  return {};
}

std::optional<double> usual_switches(std::span<const Quality> runs) {
  std::vector<double> counts;
  for (const Quality& q : runs) {
    if (q.involuntary_switches) counts.push_back(*q.involuntary_switches);
  }
  return store::quantile(std::move(counts), 0.5);
}

}  // namespace assay::evidence
