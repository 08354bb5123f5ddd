// One function per family of schedules.
#include "core/schedule/closed_form.h"

#include <algorithm>

#include "core/schedule/generators.h"

namespace assay {
namespace {

struct Makespan {
  double value;
  const char* formula;
  bool holds = true;
  const char* condition = "";
};

/// Terms of the formulas under their names there.
struct Terms {
  double p, v, m, F, I, W, B;
};

Makespan makespan_of(std::string_view name, const Terms& t) {
  const auto [p, v, m, F, I, W, B] = t;
  if (name == "gpipe" || name == "1f1b") return {(m + p - 1) * (F + B), "(m+p-1)(F+B)"};
  if (name == "interleaved_1f1b") {
    return {(m * v + p - 1) * (F + B), "(mv+p-1)(F+B)", m >= p, "m >= p"};
  }
  if (name == "looped_bfs") {
    if (m < p) return {(p * v + m - 1) * (F + B), "(pv+m-1)(F+B)"};
    return {(m * v + p - 1) * (F + B), "(mv+p-1)(F+B)"};
  }
  if (name == "interleaved_zb") {
    return {m * v * (F + B) + (p - 1) * (F + I - W), "mv(F+B)+(p-1)(F+I-W)",
            m >= p && F >= W && I >= W, "m >= p, F >= W, I >= W"};
  }
  if (name == "zbv") {
    return {(6 * m + p - 1) * F, "(6m+p-1)F", m >= 2 * p && F == I && I == W, "m >= 2p, F = I = W"};
  }
  return {0, "", false, ""};
}

struct Peak {
  int64_t value;
  const char* formula;
  bool holds = true;
};

Peak peak_of(std::string_view name, const PipelineShape& shape, int64_t r) {
  const auto [p, v, m] = shape;
  const int64_t g = generators::group_size(shape);
  if (name == "gpipe") return {m, "m"};
  if (name == "1f1b") return {std::min(m, p - r), "min(m, p-r)"};
  if (name == "interleaved_1f1b") {
    return {std::min(m * v, (v - 1) * g + 2 * (p - 1 - r) + 1), "min(mv, (v-1)g+2(p-1-r)+1)"};
  }
  if (name == "looped_bfs") return {m * v, "mv"};
  if (name == "interleaved_zb")
    return {std::min(m * v, (v - 1) * g + p), "min(mv, (v-1)g+p)", m >= p};
  if (name == "zbv") return {2 * p, "2p", m >= 2 * p};
  return {2 * p + 1, "2p+1", m >= 2 * p};
}

}  // namespace

std::string_view microbatches_rule(const PipelineSchedule& schedule) {
  if (schedule.name == "1f1b") return "m >= p";
  if (schedule.name.starts_with("interleaved_")) return "m mod (m div p) = 0";
  return schedule.placement == StagePlacement::v ? "m >= 2p" : "any";
}

ClosedForm closed_form(const PipelineSchedule& schedule, const PipelineShape& shape,
                       const ChunkTimes& times) {
  const auto [p, v, m] = shape;
  const Makespan makespan = makespan_of(
      schedule.name, {static_cast<double>(p), static_cast<double>(v), static_cast<double>(m),
                      times.forward, times.input, times.weight, times.backward()});
  ClosedForm form{.makespan_formula = makespan.formula, .condition = makespan.condition};
  if (makespan.holds && times.latency == 0) form.makespan = makespan.value;
  for (int64_t rank = 0; rank < p; ++rank) {
    const Peak peak = peak_of(schedule.name, shape, rank);
    form.peak_formula = peak.formula;
    if (peak.holds) form.peak_chunks.push_back(peak.value);
  }
  if (form.peak_chunks.empty()) {
    form.peak_formula =
        schedule.placement == StagePlacement::v ? "holds only if m >= 2p" : "holds only if m >= p";
  }
  const bool round = schedule.placement == StagePlacement::loop;
  form.messages = round ? (p == 1 ? 0 : 2 * m * (p * v - 1)) : 2 * m * (2 * p - 2);
  form.messages_formula = round ? "2m(pv-1)" : "2m(2p-2)";
  return form;
}

}  // namespace assay
