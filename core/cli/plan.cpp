// assay plan FILE: the cells that would run, and the reason for each that would not.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/cli/plan_text.h"

namespace assay::cli {
namespace {

struct PlanArguments {
  std::filesystem::path file;
  std::vector<std::string> sets;
  std::string filter;
  std::string show;
  std::string format = "text";
  int64_t max_cells = grid::PlanRequest{}.max_cells;
};

void print_plan(const PlanArguments& arguments, const Context& context) {
  grid::PlanRequest request = plan_request(context, arguments.file);
  request.sets = arguments.sets;
  request.filter = arguments.filter;
  request.max_cells = arguments.max_cells;
  request.origins = !arguments.show.empty();
  const grid::Plan plan = grid::plan(request);
  *context.err << render(plan.diagnostics);
  std::ostream& out = *context.out;
  if (request.origins) {
    out << cell_text(plan, arguments.show);
  } else if (context.json || arguments.format == "json") {
    out << plan_json(plan).dump(2) << "\n";
  } else if (arguments.format == "md") {
    out << plan_markdown(plan);
  } else {
    out << (context.verbosity < 0 ? counts_line(plan) + "\n" : plan_text(plan));
  }
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand("plan", "Show the cells of a study; stores nothing");
  command->add_option("file", arguments->file, "Study (YAML)")->required();
  command->add_option("--set", arguments->sets, "KEY=VALUE over the study's base")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command->add_option("--filter", arguments->filter, "Keep cells for which this holds")
      ->type_name("EXPR");
  command->add_option("--show", arguments->show, "One cell: each value and where it comes from")
      ->type_name("SLUG|ID");
  command->add_option("--format", arguments->format, "text, md or json")
      ->check(CLI::IsMember({"text", "md", "json"}).description(""))
      ->type_name("FORMAT");
  command->add_option("--max-cells", arguments->max_cells, "Refuse larger grids")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("N");
  command->footer(R"(
Examples:
  assay plan experiments/matrix.yaml
  assay plan experiments/matrix.yaml --filter "precision.name == 'bf16'" --set train.steps=20
  assay plan experiments/quickstart.yaml --show llama3_none)");
  command->callback([arguments, &context] { print_plan(*arguments, context); });
}

}  // namespace assay::cli
