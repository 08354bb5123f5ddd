// assay run FILE: plans a study, stores it and runs every cell that has not run yet.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "core/cli/commands.h"
#include "core/cli/comparing.h"
#include "core/cli/context.h"
#include "core/cli/plan_text.h"
#include "core/cli/supervise.h"
#include "core/cli/tuning.h"
#include "core/host/study.h"
#include "core/store/store.h"

namespace assay::cli {
namespace {

struct RunArguments {
  std::filesystem::path file{};
  std::vector<std::string> sets{};
  SuperviseFlags flags{};
};

/// Pairs of the study's compare: section, after the linter has let them pass.
void plan_pairs(store::Store& store, int64_t study_id, const grid::Plan& plan,
                const grid::Components& components, const Context& context) {
  std::vector<host::ComparisonPlan> comparisons;
  {
    const store::Reader reader(store.file());
    comparisons =
        host::declared_comparisons(reader, study_id, plan.compare, host::traits_of(components));
    store::StudyInfo study;
    study.study_id = study_id;
    study.name = plan.study;
    study.resolved_json = nlohmann::json{{"places", plan.places}}.dump();
    require_fair(reader, study, comparisons, context);
  }
  schedule(store, study_id, comparisons);
}

void run_study(const RunArguments& arguments, Context& context) {
  grid::PlanRequest request = plan_request(context, arguments.file);
  request.sets = arguments.sets;
  if (arguments.flags.devices > 0) {
    request.sets.push_back("run.devices=" + std::to_string(arguments.flags.devices));
  }
  const grid::Components* used = nullptr;
  request.components = [&used, inner = request.components ](const auto& folders) -> auto& {
    const grid::Components& components = inner(folders);
    used = &components;
    return components;
  };
  grid::Plan plan = grid::plan(request);
  *context.err << render(plan.diagnostics);
  if (context.verbosity >= 0) *context.err << counts_line(plan) << std::endl;
  store::Store store(context.database);
  std::optional<Tuned> tuned;
  if (plan.tune) {
    tuned = tune(store, request, plan, arguments.flags, context);
    if (!tuned) return;
    plan = tuned->plan;
  }
  const int64_t study_id = host::store_plan(store, plan);
  if (tuned) {
    host::record_trials(store, study_id, plan, tuned->cells, tuned->runs, tuned->choices);
  }
  if (!plan.compare.is_null()) plan_pairs(store, study_id, plan, *used, context);
  supervise(store, study_id, plan.study, plan.run, arguments.flags, context);
  print_declared(store, study_id, plan.study, context);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Run a study; what has run already is kept");
  command->add_option("file", arguments->file, "Study (YAML)")->required();
  command->add_option("--set", arguments->sets, "KEY=VALUE over the study's base")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  add_supervise_flags(*command, arguments->flags);
  command->footer(R"(
Exit code: 0 all ended and none bad, 1 fail, timeout or invalid, 2 input, 4 infrastructure or
nothing ran, 130 Ctrl-C, 143 SIGTERM.

Examples:
  assay run experiments/quickstart.yaml
  assay run experiments/matrix.yaml --filter "memory.name == 'full'" --fail-fast
  assay run experiments/matrix.yaml --only fail,timeout
  assay run longer.yaml --resume-from results/runs/adamw--0123456789ab/r0.1)");
  command->callback([arguments, &context] { run_study(*arguments, context); });
}

}  // namespace assay::cli
