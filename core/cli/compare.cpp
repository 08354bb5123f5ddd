// assay compare STUDY: the recipes of a study side by side, as measured ranges.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "assay/error.h"
#include "core/cli/commands.h"
#include "core/cli/view.h"
#include "core/report/formats.h"

namespace assay::cli {
namespace {

struct CompareArguments {
  report::ModelRequest request{};
  int pairs = 0;
};

void compare(const CompareArguments& arguments, const Context& context) {
  if (arguments.pairs > 0) {
    throw Error("paired runs and verdicts are not part of this version of assay",
                "without --pairs, 'assay compare' shows the measured ranges of the runs there are");
  }
  const store::Reader reader(context.database);
  report::ModelRequest request = arguments.request;
  request.samples = context.json;
  request.database_flag = database_flag(context);
  const report::Model model = report::build_model(reader, request);
  if (context.json) {
    *context.out << report::json(model).dump(2) << "\n";
  } else {
    *context.out << report::terminal(
        model, {.width = terminal_width(), .color = context.colored(*context.out)});
  }
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<CompareArguments>();
  report::ModelRequest& request = arguments->request;
  CLI::App* command = app.add_subcommand("compare", "The recipes of a study side by side");
  add_study_argument(*command, request.study);
  command
      ->add_option("--baseline", request.baseline, "Recipe shown first (default: the grid's first)")
      ->type_name("RECIPE");
  command->add_option("--metric", request.metrics, "One more column (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  command->add_flag("--all-keys", request.all_keys,
                    "All configuration keys, not only differing ones");
  command->add_option("--pairs", arguments->pairs, "Paired runs for a verdict")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command->footer(R"(
Examples:
  assay compare quickstart
  assay compare matrix --baseline bf16 --metric step_p90_s --metric wire_bytes
  assay compare matrix --json | jq '.rows[].figures.tokens_per_s')");
  command->callback([arguments, &context] { compare(*arguments, context); });
}

}  // namespace assay::cli
