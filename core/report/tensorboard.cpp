// A folder that TensorBoard reads: one event file per run that has steps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/report/event_file.h"
#include "core/report/formats.h"

namespace assay::report {
namespace {

constexpr double kMicro = 1e6;

double seconds(int64_t us) { return static_cast<double>(us) / kMicro; }

std::string host_of(const Model& model) {
  const auto found = std::find_if(model.environment.begin(), model.environment.end(),
                                  [](const KeyValue& entry) { return entry.first == "host"; });
  return found == model.environment.end() ? "unknown" : found->second;
}

/// A loss that was no number is kept as one: TensorBoard shows it as such.
void add_step(EventFile& file, const StepSample& step) {
  constexpr int64_t kLossNotFinite = 16;
  const double at = seconds(step.end_us);
  const bool validation = step.kind == "eval";
  const std::string group = validation ? "validation/" : "train/";
  if (step.loss)
    file.add(at, step.step, group + "loss", *step.loss);
  else if ((step.flags & kLossNotFinite) != 0)
    file.add(at, step.step, group + "loss", std::nan(""));
  if (validation || step.kind == "checkpoint") return;
  if (step.grad_norm) file.add(at, step.step, "train/grad_norm", *step.grad_norm);
  file.add(at, step.step, "train/step_s", step.wall_s);
  file.add(at, step.step, "train/tokens_total", static_cast<double>(step.tokens_total));
}

std::string content(const RunRow& run) {
  EventFile file(seconds(run.steps.front().end_us));
  for (const StepSample& step : run.steps) add_step(file, step);
  const StepSample& last = run.steps.back();
  for (const auto& [name, figure] : run.figures) {
    if (figure.value) file.add(seconds(last.end_us), last.step, "figure/" + name, *figure.value);
  }
  return file.bytes();
}

}  // namespace

std::vector<ReportFile> tensorboard(const Model& model) {
  std::vector<ReportFile> files;
  const std::string host = host_of(model);
  for (const RunRow& run : model.runs) {
    if (run.steps.empty()) continue;
    files.push_back({fmt::format("{}/run{}/events.out.tfevents.{}.{}", run.slug, run.run_id,
                                 run.steps.front().end_us / 1'000'000, host),
                     content(run)});
  }
  return files;
}

}  // namespace assay::report
