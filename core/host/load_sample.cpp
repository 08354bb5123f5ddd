// /proc/stat, /proc/pressure/cpu and the cores' clocks.
#include "core/host/load_sample.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "core/base/clock.h"
#include "core/store/quantile.h"

namespace assay::host {
namespace {

constexpr const char* kFormula = "machine.v1";
constexpr double kMicrosecond = 1e-6, kKilo = 1e3, kMega = 1e6;
constexpr size_t kSteal = 7;

void read_ticks(const std::filesystem::path& root, LoadSample& sample) {
  std::ifstream stream(root / "proc/stat");
  std::string name;
  std::array<double, 8> ticks{};  // user nice system idle iowait irq softirq steal
  stream >> name;
  double total = 0;
  for (double& tick : ticks) {
    stream >> tick;
    total += tick;
  }
  if (!stream || name != "cpu") return;
  sample.steal_ticks = ticks[kSteal];
  sample.cpu_ticks = total;
}

void read_pressure(const std::filesystem::path& root, LoadSample& sample) {
  std::ifstream stream(root / "proc/pressure/cpu");
  std::string line;
  std::getline(stream, line);
  const size_t at = line.find("total=");
  if (line.rfind("some", 0) != 0 || at == std::string::npos) return;
  sample.pressure_us = std::strtod(line.c_str() + at + 6, nullptr);
}

/// cpufreq where there is one, else the kernel's own estimate.
std::vector<double> clocks_hz(const std::filesystem::path& root) {
  std::vector<double> clocks;
  for (int cpu = 0;; ++cpu) {
    std::ifstream stream(root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) /
                         "cpufreq/scaling_cur_freq");
    double khz = 0;
    if (!(stream >> khz)) break;
    clocks.push_back(khz * kKilo);
  }
  if (!clocks.empty()) return clocks;
  std::ifstream stream(root / "proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(':');
    if (line.rfind("cpu MHz", 0) != 0 || colon == std::string::npos) continue;
    clocks.push_back(std::strtod(line.c_str() + colon + 1, nullptr) * kMega);
  }
  return clocks;
}

store::Metric figure(const char* name, double value, const char* unit) {
  return {.name = name, .value = value, .unit = unit, .formula_id = kFormula};
}

}  // namespace

LoadSample sample_load(const std::filesystem::path& root) {
  LoadSample sample{.at_s = monotonic_s()};
  read_ticks(root, sample);
  read_pressure(root, sample);
  sample.clock_hz = store::quantile(clocks_hz(root), 0.5);
  return sample;
}

std::vector<store::Metric> load_figures(const LoadSample& before, const LoadSample& after) {
  std::vector<store::Metric> figures;
  if (before.cpu_ticks && after.cpu_ticks && *after.cpu_ticks > *before.cpu_ticks) {
    const double stolen = *after.steal_ticks - *before.steal_ticks;
    figures.push_back(figure("steal_share", stolen / (*after.cpu_ticks - *before.cpu_ticks), "1"));
  }
  const double wall_s = after.at_s - before.at_s;
  if (before.pressure_us && after.pressure_us && wall_s > 0) {
    const double waited_s = (*after.pressure_us - *before.pressure_us) * kMicrosecond;
    figures.push_back(figure("cpu_pressure_share", std::min(1.0, waited_s / wall_s), "1"));
  }
  if (before.clock_hz && after.clock_hz) {
    figures.push_back(figure("clock_hz", (*before.clock_hz + *after.clock_hz) / 2, "Hz"));
  }
  return figures;
}

}  // namespace assay::host
