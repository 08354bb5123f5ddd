// Stacked bars: a peak of memory by category, the traffic of a step by group of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/report/bars.h"
#include "core/report/chart.h"

namespace assay::report {
namespace {

constexpr size_t kColours = 8;
constexpr double kKiB = 1024, kMiB = kKiB * 1024, kGiB = kMiB * 1024;

/// Parts of one bar in a fixed order, in bytes.
using Parts = std::vector<std::pair<std::string, double>>;

struct Stack {
  const Row* row = nullptr;
  Parts parts{};
  double total = 0;
  std::string total_text{};  ///< as the table has it
};

struct Unit {
  double scale = 1;
  const char* name = "bytes";
};

Unit unit_for(double bytes) {
  if (bytes >= kGiB) return {kGiB, "GiB"};
  if (bytes >= kMiB) return {kMiB, "MiB"};
  if (bytes >= kKiB) return {kKiB, "KiB"};
  return {};
}

/// Names in the order of the bars: the given ones first, others by name.
std::vector<std::string> names_of(const std::vector<Stack>& stacks,
                                  std::vector<std::string> names) {
  std::map<std::string, bool> seen;
  for (const Stack& stack : stacks) {
    for (const auto& [name, bytes] : stack.parts) seen[name] = seen[name] || bytes > 0;
  }
  std::erase_if(names, [&](const std::string& name) { return !seen[name]; });
  for (const auto& [name, any] : seen) {
    if (any && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string spoken(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

void draw_stack(BarChart& bars, size_t place, const Stack& stack,
                const std::vector<std::string>& names, const Unit& unit) {
  double from = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto part = std::find_if(stack.parts.begin(), stack.parts.end(),
                                   [&](const auto& entry) { return entry.first == names[i]; });
    if (part == stack.parts.end() || part->second <= 0) continue;
    const double value = part->second / unit.scale, x = bars.x()(from);
    bars.svg().rect({x, bars.middle(place) - BarChart::kBar / 2}, bars.x()(from + value) - x,
                    BarChart::kBar, fmt::format("gap f{}", i % kColours),
                    fmt::format("{}: {} {} {}", stack.row->label, spoken(names[i]),
                                print(value, decimals(value, {})), unit.name));
    from += value;
  }
}

struct StackLook {
  bool largest_first = false;
  std::vector<std::string> order{};  ///< of the parts
  std::string per{};                 ///< " per step"
};

Chart stack_chart(const Model& model, Chart chart, std::vector<Stack> stacks,
                  const StackLook& look) {
  std::stable_sort(stacks.begin(), stacks.end(), [&](const Stack& a, const Stack& b) {
    return look.largest_first ? a.total > b.total : a.total < b.total;
  });
  if (stacks.size() > kMostBars) {
    chart.notes.push_back(
        fmt::format("{} more recipes are in the table", stacks.size() - kMostBars));
    const auto hidden = stacks.begin() + kMostBars;
    const auto baseline =
        std::find_if(hidden, stacks.end(), [](const Stack& stack) { return stack.row->baseline; });
    if (baseline != stacks.end()) stacks[kMostBars - 1] = *baseline;
    stacks.resize(kMostBars);
  }
  Range range{.low = 0, .high = 0, .empty = false};
  for (const Stack& stack : stacks) range.add(stack.total);
  const Unit unit = unit_for(range.high);
  range.high = range.high > 0 ? range.high / unit.scale : 1;
  std::vector<std::string> names, values;
  for (const Stack& stack : stacks) {
    names.push_back(row_label(model, *stack.row));
    const double total = stack.total / unit.scale;
    values.push_back(stack.total_text.empty() ? print(total, decimals(total, {}))
                                              : stack.total_text);
  }
  BarChart bars({.picture = chart.title, .axis = unit.name + look.per}, names, values, range);
  const auto parts = names_of(stacks, look.order);
  for (size_t i = 0; i < stacks.size(); ++i) draw_stack(bars, i, stacks[i], parts, unit);
  for (size_t i = 0; i < parts.size(); ++i) {
    chart.legend.push_back({fmt::format("f{}", i % kColours), spoken(parts[i])});
  }
  chart.svg = bars.svg().str();
  return chart;
}

/// Of a recipe's ok runs the one for which `size` is largest.
template <class F>
const RunRow* largest_run(const std::map<int64_t, const RunRow*>& runs, const Row& row, F&& size) {
  const RunRow* largest = nullptr;
  for (const int64_t id : row.runs) {
    const RunRow* run = runs.at(id);
    if (run->state != "ok") continue;
    if (largest == nullptr || size(*run) > size(*largest)) largest = run;
  }
  return largest;
}

std::map<int64_t, const RunRow*> runs_of(const Model& model) {
  std::map<int64_t, const RunRow*> runs;
  for (const RunRow& run : model.runs) runs[run.run_id] = &run;
  return runs;
}

double memory_total(const RunRow& run) {
  double total = 0;
  for (const auto& [category, bytes] : run.memory) total += static_cast<double>(bytes);
  return total;
}

double traffic_total(const RunRow& run) {
  double total = 0;
  for (const GroupBytes& group : run.traffic) total += group.wire_bytes;
  return total;
}

}  // namespace

std::optional<Chart> memory_chart(const Model& model) {
  const auto runs = runs_of(model);
  std::vector<Stack> stacks;
  for (const Row& row : model.rows) {
    const RunRow* run = largest_run(runs, row, memory_total);
    if (run == nullptr || run->memory.empty()) continue;
    Stack stack{.row = &row, .total = memory_total(*run)};
    for (const auto& [category, bytes] : run->memory) {
      stack.parts.emplace_back(category, static_cast<double>(bytes));
    }
    stacks.push_back(std::move(stack));
  }
  if (stacks.empty()) return std::nullopt;
  return stack_chart(model,
                     {.title = "Peak allocated memory by what holds it",
                      .subtitle = "the rank and phase with the highest peak, least first"},
                     std::move(stacks),
                     {.order = {"parameters", "gradients", "optimizer", "unsharded", "activations",
                                "comm_buffers", "other"}});
}

std::optional<Chart> traffic_chart(const Model& model) {
  const auto runs = runs_of(model);
  std::vector<Stack> stacks;
  size_t silent = 0;
  for (const Row& row : model.rows) {
    const RunRow* run = largest_run(runs, row, traffic_total);
    if (run == nullptr) continue;
    Stack stack{.row = &row, .total = traffic_total(*run)};
    for (const GroupBytes& group : run->traffic) {
      stack.parts.emplace_back(group.group, group.wire_bytes);
    }
    if (stack.total > 0)
      stacks.push_back(std::move(stack));
    else
      ++silent;
  }
  if (stacks.empty()) return std::nullopt;
  Chart chart{.title = "Bytes on the wire by group of ranks",
              .subtitle = "sent in a step by the rank that sends most, most first"};
  if (silent > 0) chart.notes.push_back(fmt::format("{} recipes send nothing: one rank", silent));
  return stack_chart(model, std::move(chart), std::move(stacks),
                     {.largest_first = true,
                      .order = {"dp_replicate", "dp_shard", "cp", "tp", "pp", "ep"},
                      .per = " per step"});
}

}  // namespace assay::report
