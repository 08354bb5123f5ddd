// Asks the schedule library; reads the schedules of files.
#include "core/grid/pipeline_check.h"

#include <algorithm>

#include "assay/error.h"
#include "assay/files.h"
#include "core/schedule/csv.h"

namespace assay::grid {
namespace {

constexpr const char* kRule = "R-CSV";

const PipelineSchedule* known(const std::string& name) {
  const auto& all = pipeline_schedules();
  const auto found = std::ranges::find(all, name, &PipelineSchedule::name);
  return found == all.end() ? nullptr : &*found;
}

/// Of an error "R-PPL: text" without the rule.
PipelineRefusal refusal_of(const Error& error, const std::string& rule) {
  std::string text = error.what();
  if (text.starts_with(rule)) text.erase(0, rule.size() + 2);
  return {rule, std::move(text), error.hint()};
}

PipelineRefusal refusal_of(const Diagnostic& problem) {
  std::string text = problem.place + ": " + problem.text;
  for (const std::string& detail : problem.details) text += "; " + detail;
  return {kRule, text, problem.hints.empty() ? "" : problem.hints.front()};
}

}  // namespace

const PipelineCheck::Answer& PipelineCheck::of_file(const PipelineQuestion& q) {
  const auto [found, fresh] = files_.try_emplace({q.csv, q.ranks, q.microbatches});
  Answer& answer = found->second;
  if (!fresh) return answer;
  if (q.csv.empty()) {
    answer.refusal = {kRule, "schedule csv has no file", "set csv to a file, one row per rank"};
    return answer;
  }
  try {
    const ScheduleReading reading = parse_schedule_csv(read_file(q.csv), q.csv, q.ranks);
    answer.stages = std::ssize(reading.file.rank_of_stage);
    if (!reading.problems.empty()) {
      answer.refusal = refusal_of(reading.problems.front());
    } else if (reading.file.microbatches != q.microbatches) {
      answer.refusal = {kRule,
                        q.csv + ":1:1: the schedule has " +
                            std::to_string(reading.file.microbatches) +
                            " microbatches, train.grad_accum is " + std::to_string(q.microbatches),
                        "set train.global_batch and train.micro_batch accordingly"};
    }
  } catch (const Error& error) {
    answer.refusal = refusal_of(error, kRule);
  }
  return answer;
}

std::optional<PipelineRefusal> PipelineCheck::refusal(const PipelineQuestion& q) {
  int64_t stages = 0;
  if (q.schedule == "csv") {
    const Answer& answer = of_file(q);
    if (answer.refusal) return answer.refusal;
    stages = answer.stages;
  } else if (const PipelineSchedule* schedule = known(q.schedule)) {
    const PipelineShape shape{.ranks = q.ranks,
                              .chunks = q.chunks > 0 ? q.chunks : schedule->default_chunks,
                              .microbatches = q.microbatches};
    if (auto refused = assay::refusal(*schedule, shape, {.allow_short = q.allow_short})) {
      return refused;
    }
    stages = shape.stages();
  }
  if (stages == 0 || q.layers == 0) return std::nullopt;
  try {
    split_layers(q.layers, stages, q.first_less_layers, q.last_less_layers);
  } catch (const Error& error) {
    return refusal_of(error, "R-PPL");
  }
  return std::nullopt;
}

}  // namespace assay::grid
