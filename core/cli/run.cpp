// assay run FILE: plans a study, stores it and runs every cell that has not run yet.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/cli/plan_text.h"
#include "core/cli/supervise.h"
#include "core/host/study.h"
#include "core/store/store.h"

namespace assay::cli {
namespace {

struct RunArguments {
  std::filesystem::path file{};
  std::vector<std::string> sets{};
  SuperviseFlags flags{};
};

void run_study(const RunArguments& arguments, Context& context) {
  grid::PlanRequest request = plan_request(context, arguments.file);
  request.sets = arguments.sets;
  if (arguments.flags.devices > 0) {
    request.sets.push_back("run.devices=" + std::to_string(arguments.flags.devices));
  }
  const grid::Plan plan = grid::plan(request);
  *context.err << render(plan.diagnostics);
  if (context.verbosity >= 0) *context.err << counts_line(plan) << std::endl;
  store::Store store(context.database);
  const int64_t study_id = host::store_plan(store, plan);
  supervise(store, study_id, plan.study, plan.run, arguments.flags, context);
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
  assay run experiments/matrix.yaml --only fail,timeout)");
  command->callback([arguments, &context] { run_study(*arguments, context); });
}

}  // namespace assay::cli
