// Figures of a schedule beside their closed forms, the list of schedules, and JSON.
#include <fmt/format.h>

#include <algorithm>

#include "core/cli/schedule_view.h"

namespace assay::cli {
namespace {

using nlohmann::json;

std::string plural(int64_t count, const std::string& word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

/// "4,3,2,1", or "8 on every rank".
std::string per_rank(const std::vector<int64_t>& values) {
  const bool equal = std::all_of(values.begin(), values.end(),
                                 [&](int64_t value) { return value == values.front(); });
  if (equal && values.size() > 1) return fmt::format("{} on every rank", values.front());
  return fmt::format("{}", fmt::join(values, ","));
}

int64_t sum(const std::vector<int64_t>& values) {
  int64_t total = 0;
  for (const int64_t value : values) total += value;
  return total;
}

double ideal(const ScheduleView& view) {
  return static_cast<double>(view.shape.microbatches * view.shape.chunks) *
         (view.times.forward + view.times.backward());
}

struct FigureRow {
  std::string name, simulated, closed, formula;
};

/// Why no makespan is given: the condition that does not hold.
std::string silence(const ScheduleView& view) {
  if (view.form->makespan_formula.empty()) return "no closed form";
  if (view.times.latency > 0) return "holds only with free transfers";
  return "holds only if " + view.form->condition;
}

std::vector<FigureRow> figure_rows(const ScheduleView& view) {
  const Timeline& line = view.line;
  std::vector<FigureRow> rows = {
      {"makespan", print_time(line.makespan), "", ""},
      {"bubble", print_time(line.bubble), "", ""},
      {"bubble share", fmt::format("{:.4f}", line.bubble_share()), "", ""},
      {"peak chunks in flight", per_rank(line.peak_chunks), "", ""},
      {"messages", std::to_string(sum(line.messages)), "", ""}};
  if (!view.form) return rows;
  const ClosedForm& form = *view.form;
  if (form.makespan) {
    const double bubble = *form.makespan - ideal(view);
    rows[0].closed = print_time(*form.makespan);
    rows[0].formula = form.makespan_formula;
    rows[1].closed = print_time(bubble);
    rows[1].formula = "makespan - mv(F+B)";
    rows[2].closed = fmt::format("{:.4f}", bubble / *form.makespan);
  } else {
    for (size_t i = 0; i < 3; ++i) rows[i].closed = "-";
    rows[0].formula = silence(view);
  }
  rows[3].closed = form.peak_chunks.empty() ? "-" : per_rank(form.peak_chunks);
  rows[3].formula = form.peak_formula;
  rows[4].closed = std::to_string(form.messages);
  rows[4].formula = form.messages_formula;
  return rows;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

json times_json(const ChunkTimes& times) {
  return {{"forward", times.forward},
          {"input", times.input},
          {"weight", times.weight},
          {"overlapped", times.pair()},
          {"latency", times.latency}};
}

json form_json(const ScheduleView& view) {
  if (!view.form) return nullptr;
  const ClosedForm& form = *view.form;
  json out = {{"makespan", nullptr},
              {"bubble", nullptr},
              {"peak_chunks", nullptr},
              {"messages", form.messages}};
  if (form.makespan) {
    out["makespan"] = *form.makespan;
    out["bubble"] = *form.makespan - ideal(view);
  }
  if (!form.peak_chunks.empty()) out["peak_chunks"] = form.peak_chunks;
  return out;
}

json rank_json(const ScheduleView& view, size_t rank) {
  json actions = json::array();
  for (const Span& span : view.line.ranks[rank]) {
    const auto unit = std::span(view.lists[rank]).subspan(span.index, span.size);
    actions.push_back({{"action", print(unit)}, {"start", span.start}, {"end", span.end}});
  }
  return {{"rank", rank},
          {"busy", view.line.busy[rank]},
          {"peak_chunks", view.line.peak_chunks[rank]},
          {"messages", view.line.messages[rank]},
          {"actions", std::move(actions)}};
}

std::string chunks_text(const PipelineSchedule& schedule) {
  if (schedule.least_chunks == schedule.most_chunks) return std::to_string(schedule.least_chunks);
  return fmt::format("{}+", schedule.least_chunks);
}

const char* placement_text(const PipelineSchedule& schedule) {
  return schedule.placement == StagePlacement::loop ? "loop" : "v";
}

}  // namespace

std::string print_time(double value) {
  std::string text = fmt::format("{:.4f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

int64_t chunk_of(const ScheduleView& view, int64_t stage) {
  const auto& ranks = view.rank_of_stage;
  const int64_t rank = ranks[static_cast<size_t>(stage)];
  return std::count(ranks.begin(), ranks.begin() + stage, rank);
}

std::string unit_label(const ScheduleView& view, std::span<const Action> unit) {
  if (unit.size() == 2) return print(unit[0]) + "+" + print(unit[1]);
  const std::string full = print(unit.front());
  if (view.shape.chunks > 1) return full;
  const std::string short_form = full.substr(full.find_first_not_of("0123456789"));
  return short_form.starts_with("F") ? short_form.substr(1) : short_form;
}

std::string head_line(const ScheduleView& view) {
  const auto [p, v, m] = view.shape;
  std::string line = fmt::format(
      "{}: p = {}, v = {}, m = {}; F = {}, I = {}, W = {}", view.name, plural(p, "rank"),
      plural(v, "stage") + " per rank", m == 1 ? "1 microbatch" : fmt::format("{} microbatches", m),
      print_time(view.times.forward), print_time(view.times.input), print_time(view.times.weight));
  if (view.times.overlapped > 0) line += ", O = " + print_time(view.times.overlapped);
  if (view.times.latency > 0) line += ", c = " + print_time(view.times.latency);
  return line;
}

std::string figures_text(const ScheduleView& view) {
  std::vector<FigureRow> rows = figure_rows(view);
  rows.insert(rows.begin(), {"", "simulated", view.form ? "closed form" : "", ""});
  size_t name = 0, simulated = 0, closed = 0;
  for (const FigureRow& row : rows) {
    name = std::max(name, row.name.size());
    simulated = std::max(simulated, row.simulated.size());
    closed = std::max(closed, row.closed.size());
  }
  std::string out;
  for (const FigureRow& row : rows) {
    out += trimmed(fmt::format("{:<{}}  {:<{}}  {:<{}}  {}", row.name, name, row.simulated,
                               simulated, row.closed, closed, row.formula));
  }
  return out;
}

json schedule_json(const ScheduleView& view, const std::vector<ActionList>* lowered) {
  json ranks = json::array();
  for (size_t rank = 0; rank < view.lists.size(); ++rank) {
    ranks.push_back(rank_json(view, rank));
    if (lowered) ranks.back()["lowered"] = print((*lowered)[rank]);
  }
  return {{"schema_version", 1},
          {"schedule", view.name},
          {"pipeline_ranks", view.shape.ranks},
          {"chunks", view.shape.chunks},
          {"microbatches", view.shape.microbatches},
          {"rank_of_stage", view.rank_of_stage},
          {"times", times_json(view.times)},
          {"makespan", view.line.makespan},
          {"bubble", view.line.bubble},
          {"bubble_share", view.line.bubble_share()},
          {"closed_form", form_json(view)},
          {"ranks", std::move(ranks)}};
}

std::string schedules_text() {
  constexpr const char* kLine = "{:<18}{:<8}{:<21}{:<11}{:<10}{}\n";
  std::string out =
      fmt::format(kLine, "name", "chunks", "microbatches", "placement", "backward", "");
  out = trimmed(out.substr(0, out.size() - 1));
  for (const PipelineSchedule& schedule : pipeline_schedules()) {
    out += fmt::format(kLine, schedule.name, chunks_text(schedule), microbatches_rule(schedule),
                       placement_text(schedule), schedule.splits_backward ? "I, W" : "B",
                       schedule.summary);
  }
  return out;
}

json schedules_json() {
  json list = json::array();
  for (const PipelineSchedule& schedule : pipeline_schedules()) {
    list.push_back({{"name", schedule.name},
                    {"placement", placement_text(schedule)},
                    {"least_chunks", schedule.least_chunks},
                    {"most_chunks", nullptr},
                    {"default_chunks", schedule.default_chunks},
                    {"microbatches", microbatches_rule(schedule)},
                    {"splits_backward", schedule.splits_backward},
                    {"summary", schedule.summary},
                    {"reference", schedule.reference}});
    if (schedule.most_chunks > 0) list.back()["most_chunks"] = schedule.most_chunks;
  }
  return {{"schema_version", 1}, {"schedules", std::move(list)}};
}

}  // namespace assay::cli
