// Trials from the command line.
#include "core/cli/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "assay/error.h"
#include "core/base/nearest.h"
#include "core/cli/plan_text.h"
#include "core/host/machine.h"

namespace assay::cli {
namespace {

/// Names of `compare:` that no recipe has are told before hours of trials, not after them.
void require_compared_names(const grid::Plan& plan) {
  const nlohmann::json baseline =
      plan.compare.is_object() ? plan.compare.value("baseline", nlohmann::json()) : nullptr;
  if (!baseline.is_string()) return;
  std::vector<std::string> names = {baseline}, arms;
  for (const nlohmann::json& c : plan.compare.value("candidates", nlohmann::json::array())) {
    if (c.is_string()) names.push_back(c);
  }
  for (const grid::Cell& cell : plan.cells) arms.push_back(cell.arm);
  for (const std::string& name : names) {
    if (std::find(arms.begin(), arms.end(), name) != arms.end()) continue;
    const std::string near = did_you_mean(nearest(name, arms));
    throw Error("the study has no recipe '" + name + "'",
                near.empty() ? "see assay plan " + plan.file.string() : near);
  }
}

std::string choice_text(const grid::Tune& tune, const host::Choice& choice) {
  std::string text =
      fmt::format("tuned  {}  {} {} (x{})  {} {:.4f}\n", choice.arm, tune.key, choice.value,
                  tune.factors[choice.factor], tune.score, choice.score);
  if (choice.edge) text += "       at the end of the list: a value beyond it may be better\n";
  return text;
}

}  // namespace

void require_untuned(const grid::Plan& plan, const std::string& who) {
  if (!plan.tune) return;
  throw Error("the study '" + plan.study + "' has a section 'tune', which " + who + " does not run",
              "tune with assay run, then write the chosen values into the study");
}

std::optional<Tuned> tune(store::Store& store, const grid::PlanRequest& request,
                          const grid::Plan& plan, const SuperviseFlags& flags, Context& context) {
  if (!flags.filter.empty()) {
    throw Error("--filter does not go with 'tune', which gives all recipes the same trials",
                "run the study whole, or take the recipes out of its grid");
  }
  require_compared_names(plan);
  if (context.verbosity >= 0) *context.err << tune_line(plan) << std::endl;
  const grid::Trials trials = grid::plan_trials(request, plan);
  const store::Env env = host::this_env(request.binaries.libtorch);
  const host::TrialRuns queued = host::queue_trials(
      store, trials, env.machine_id,
      flags.only.empty() ? std::vector<std::string>{"queued", "killed", "infra"} : flags.only);
  if (!queued.waiting.empty()) {
    supervise_runs(store, queued.study_id, trials.plan.study, plan.run, queued.waiting, flags,
                   context);
    constexpr int kInfrastructure = 4;  // and above: stopped by a signal
    if (context.exit_code >= kInfrastructure) {
      *context.err << "trials are left; this goes on with them, then with the study: assay run "
                   << plan.file.string() << "\n";
      return std::nullopt;
    }
    context.exit_code = 0;  // a trial that failed is the worst one, not a failed study
  }
  Tuned tuned{.cells = trials.cells, .runs = queued.runs};
  {
    const store::Reader reader(store.file());
    tuned.choices = host::choose(reader, *plan.tune, tuned.cells, tuned.runs);
  }
  grid::PlanRequest chosen = request;
  for (const host::Choice& choice : tuned.choices) {
    chosen.tuned[choice.arm] = choice.value;
    if (context.verbosity >= 0) *context.err << choice_text(*plan.tune, choice);
  }
  tuned.plan = grid::plan(chosen);
  return tuned;
}

}  // namespace assay::cli
