// Progress lines; the block is erased before anything that stays is printed.
#include "core/cli/progress.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "core/base/units.h"

namespace assay::cli {
namespace {

constexpr auto kRedrawPeriod = std::chrono::milliseconds(200);
constexpr double kKilo = 1e3, kMega = 1e6;

std::string label(const host::RunView& run, int64_t index, int64_t runs) {
  return fmt::format("[{}/{}] {} r{}", index, runs, run.slug, run.slot);
}

nlohmann::json run_json(const char* name, const host::RunView& run) {
  nlohmann::json event = {{"event", name},
                          {"schema_version", 1},
                          {"run_id", run.run_id},
                          {"attempt_id", run.attempt_id},
                          {"attempt", run.n},
                          {"cell", run.slug},
                          {"slot", run.slot},
                          {"state", run.state},
                          {"elapsed_s", run.elapsed_s}};
  if (!run.reason.empty()) event["reason"] = run.reason;
  if (!run.phase.empty()) event["phase"] = run.phase;
  if (run.step > 0) {
    event["step"] = run.step;
    event["steps"] = run.steps;
    event["tokens_per_s"] = run.tokens_per_s;
    event["loss"] = run.loss;
    event["allocated_bytes"] = run.allocated_bytes;
  }
  return event;
}

nlohmann::json totals_json(const host::Totals& t) {
  return {{"runs", t.runs},   {"queued", t.queued},  {"running", t.running}, {"ok", t.ok},
          {"oom", t.oom},     {"fail", t.fail},      {"timeout", t.timeout}, {"killed", t.killed},
          {"infra", t.infra}, {"invalid", t.invalid}};
}

}  // namespace

std::string print_rate(double value) {
  if (value >= kMega) return fmt::format("{:.1f}M", value / kMega);
  if (value >= kKilo) return fmt::format("{:.1f}k", value / kKilo);
  return fmt::format("{:.0f}", value);
}

std::string running_line(const host::RunView& run, int64_t index, int64_t runs) {
  std::string text = label(run, index, runs);
  if (run.step > 0) {
    text +=
        fmt::format("  step {}/{}  {} tok/s", run.step, run.steps, print_rate(run.tokens_per_s));
    if (run.allocated_bytes > 0) text += "  " + print_bytes(run.allocated_bytes);
  } else {
    text += "  " + (run.phase.empty() ? std::string("starting") : run.phase);
  }
  return text + "  " + print_clock(run.elapsed_s);
}

std::string totals_line(const host::Totals& t) {
  std::string text = fmt::format("{} of {} done", t.ended(), t.runs);
  const std::pair<const char*, int64_t> counts[] = {
      {"ok", t.ok},           {"oom", t.oom},     {"fail", t.fail},    {"timeout", t.timeout},
      {"invalid", t.invalid}, {"infra", t.infra}, {"killed", t.killed}};
  const char* separator = ": ";
  for (const auto& [name, count] : counts) {
    if (count == 0) continue;
    text += fmt::format("{}{} {}", separator, count, name);
    separator = ", ";
  }
  if (t.queued + t.running == 0) return text;
  return text + (t.eta_s < 0 ? "; - left" : "; about " + print_clock(t.eta_s) + " left");
}

Progress::Progress(std::ostream& out, std::ostream& err, ProgressStyle style)
    : out_(out), err_(err), style_(style) {}

Progress::~Progress() { erase(); }

int64_t Progress::index_of(const host::RunView& run) {
  return indices_.try_emplace(run.run_id, static_cast<int64_t>(indices_.size()) + 1).first->second;
}

void Progress::started(const host::RunView& run, const host::Totals& totals) {
  running_[run.run_id] = run;
  const int64_t index = index_of(run);
  if (style_.json) return event("run_state", run);
  if (!style_.quiet && !style_.redraw) line(label(run, index, totals.runs) + "  running");
  draw(totals, true);
}

void Progress::progressed(const host::RunView& run, const host::Totals& totals) {
  running_[run.run_id] = run;
  if (style_.json) return event("progress", run);
  draw(totals, false);
}

void Progress::ended(const host::RunView& run, const host::Totals& totals) {
  running_.erase(run.run_id);
  const int64_t index = index_of(run);
  if (style_.json) return event("run_state", run);
  const bool good = run.state == "ok";
  if (!good || !style_.quiet) {
    std::string text = label(run, index, totals.runs) + "  " + run.state;
    if (!run.reason.empty()) text += ": " + run.reason;
    text += "  " + print_clock(run.elapsed_s);
    if (!good) text += fmt::format("  (assay log {})", run.run_id);
    line(text);
  }
  draw(totals, true);
}

void Progress::note(const std::string& text) {
  if (style_.json) {
    out_ << nlohmann::json{{"event", "note"}, {"schema_version", 1}, {"text", text}}.dump()
         << std::endl;
  } else {
    line(text);
  }
}

void Progress::finish(const host::Totals& totals, int exit_code) {
  erase();
  running_.clear();
  if (style_.json) {
    const nlohmann::json end = {{"event", "end"},
                                {"schema_version", 1},
                                {"exit_code", exit_code},
                                {"totals", totals_json(totals)}};
    out_ << end.dump() << std::endl;
  } else {
    err_ << totals_line(totals) << std::endl;
  }
}

void Progress::event(const char* name, const host::RunView& run) {
  out_ << run_json(name, run).dump() << std::endl;
}

void Progress::line(const std::string& text) {
  erase();
  err_ << text << std::endl;
}

void Progress::draw(const host::Totals& totals, bool now) {
  if (!style_.redraw || style_.quiet) return;
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - drawn_at_ < kRedrawPeriod) return;
  erase();
  drawn_at_ = time;
  const auto width = static_cast<size_t>(style_.width);
  for (const auto& [id, run] : running_) {
    err_ << running_line(run, index_of(run), totals.runs).substr(0, width) << "\n";
  }
  err_ << totals_line(totals).substr(0, width) << "\n" << std::flush;
  drawn_lines_ = static_cast<int>(running_.size()) + 1;
}

void Progress::erase() {
  if (drawn_lines_ > 0) err_ << "\033[" << drawn_lines_ << "A\033[J" << std::flush;
  drawn_lines_ = 0;
}

}  // namespace assay::cli
