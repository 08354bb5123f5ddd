// Scores of trials.
#include "core/host/tuning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "assay/error.h"
#include "core/evidence/assess.h"
#include "core/evidence/run_record.h"
#include "core/host/study.h"
#include "core/store/comparisons.h"
#include "core/store/reader.h"

namespace assay::host {
namespace {

constexpr double kWorst = std::numeric_limits<double>::infinity();

bool waits(const std::string& state) {
  return state == "queued" || state == "running" || state == "killed" || state == "infra";
}

double score_of(const evidence::RunRecord& run, const std::string& metric) {
  const auto value = run.ok() ? run.figure(metric) : std::nullopt;
  return value && std::isfinite(*value) ? *value : kWorst;
}

/// Mean scores by recipe and factor.
using Scores = std::map<std::string, std::vector<double>>;

Scores mean_scores(const std::map<int64_t, evidence::RunRecord>& records, const grid::Tune& tune,
                   const std::vector<grid::TrialCell>& cells, const std::vector<int64_t>& runs) {
  Scores scores;
  for (size_t i = 0; i < cells.size(); ++i) {
    auto& list = scores.try_emplace(cells[i].arm, tune.factors.size(), 0.0).first->second;
    list[cells[i].factor] +=
        score_of(records.at(runs[i]), tune.score) / static_cast<double>(tune.seeds.size());
  }
  return scores;
}

int64_t run_of(const std::string& arm, const std::vector<grid::TrialCell>& cells,
               const std::vector<int64_t>& runs) {
  const auto cell = std::find_if(cells.begin(), cells.end(),
                                 [&](const grid::TrialCell& c) { return c.arm == arm; });
  return runs[static_cast<size_t>(cell - cells.begin())];
}

}  // namespace

TrialRuns queue_trials(store::Store& store, const grid::Trials& trials,
                       const std::string& machine_id, const std::vector<std::string>& states) {
  TrialRuns queued{.study_id = store_plan(store, trials.plan)};
  for (const grid::TrialCell& cell : trials.cells) {
    queued.runs.push_back(store.ensure_run(cell.cell_id, machine_id, "tune", 0, 0));
  }
  const store::Reader reader(store.file());
  for (const StudyRun& run : named_runs(reader, queued.study_id, queued.runs)) {
    if (std::find(states.begin(), states.end(), run.state) == states.end()) continue;
    queued.waiting.push_back(run.run.run_id);
  }
  std::sort(queued.waiting.begin(), queued.waiting.end());
  const auto repeated = std::unique(queued.waiting.begin(), queued.waiting.end());
  queued.waiting.erase(repeated, queued.waiting.end());
  return queued;
}

std::vector<Choice> choose(const store::Reader& reader, const grid::Tune& tune,
                           const std::vector<grid::TrialCell>& cells,
                           const std::vector<int64_t>& runs) {
  const auto records = evidence::load_runs(reader, runs);
  for (const auto& [id, run] : records) {
    if (waits(run.state)) {
      throw InfrastructureError("trial run " + std::to_string(id) + " is " + run.state +
                                    ": no value is chosen before all trials have ended",
                                "run the study again, it goes on there");
    }
  }
  std::vector<Choice> choices;
  for (const auto& [arm, scores] : mean_scores(records, tune, cells, runs)) {
    const auto best = std::min_element(scores.begin(), scores.end());  // the first of equal ones
    if (*best == kWorst) {
      throw Error("no trial of the recipe '" + arm + "' has a " + tune.score,
                  "see why: assay log " + std::to_string(run_of(arm, cells, runs)));
    }
    const auto factor = static_cast<size_t>(best - scores.begin());
    const auto cell = std::find_if(cells.begin(), cells.end(), [&](const grid::TrialCell& c) {
      return c.arm == arm && c.factor == factor;
    });
    const bool edge = factor == 0 || factor + 1 == scores.size();
    choices.push_back({arm, factor, cell->value, *best, edge});
  }
  return choices;
}

void record_trials(store::Store& store, int64_t study_id, const grid::Plan& plan,
                   const std::vector<grid::TrialCell>& cells, const std::vector<int64_t>& runs,
                   const std::vector<Choice>& choices) {
  const store::Reader reader(store.file());
  const auto records = evidence::load_runs(reader, runs);
  std::map<std::string, std::string> labels, recipes;  // by recipe, and by arm
  for (const evidence::Arm& arm : evidence::load_arms(reader, study_id)) {
    labels[arm.recipe_id] = arm.label;
  }
  for (const grid::Cell& cell : plan.cells) recipes[cell.arm] = cell.recipe_id;
  std::vector<store::TrialRow> rows;
  for (size_t i = 0; i < cells.size(); ++i) {
    const grid::TrialCell& cell = cells[i];
    const double score = score_of(records.at(runs[i]), plan.tune->score);
    const bool chosen = std::any_of(choices.begin(), choices.end(), [&](const Choice& c) {
      return c.arm == cell.arm && c.factor == cell.factor;
    });
    rows.push_back({.arm = labels[recipes[cell.arm]],
                    .idx = static_cast<int64_t>(cell.factor),
                    .run_id = runs[i],
                    .value = {{plan.tune->key, cell.value}},
                    .score = score == kWorst ? store::Real() : store::Real(score),
                    .chosen = chosen});
  }
  store::put_trials(store, study_id, rows);
}

}  // namespace assay::host
