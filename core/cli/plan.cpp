// assay plan FILE: the cells that would run, and the reason for each that would not.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "core/base/units.h"
#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/cli/dry_run_cells.h"
#include "core/cli/plan_text.h"
#include "core/grid/check.h"
#include "core/grid/tuning.h"
#include "core/host/machine.h"

namespace assay::cli {
namespace {

struct PlanArguments {
  std::filesystem::path file;
  std::vector<std::string> sets;
  std::string filter;
  std::string show;
  std::string format = "text";
  int64_t max_cells = grid::PlanRequest{}.max_cells;
  bool deep = false, predict = false, prune = false;
};

// Takes out of the plan what a dry run refuses, and with --prune what would not fit. Gives the
// lines of --predict.
std::string judge_by_dry_runs(const PlanArguments& arguments, const Context& context,
                              grid::Plan& plan) {
  const grid::Plan shapes = plan_for_any_machine(arguments.file, arguments.sets, context);
  const int64_t limit = plan.run.memory_limit_bytes.value_or(host::usable_memory_bytes());
  std::vector<const grid::Cell*> asked;
  for (const grid::Cell& cell : plan.cells) asked.push_back(&find_cell(shapes, cell.slug));
  const std::vector<nlohmann::json> runs = dry_run_cells(asked, 0);
  std::vector<grid::Cell> kept;
  std::string predictions;
  for (size_t i = 0; i < runs.size(); ++i) {
    grid::Cell& cell = plan.cells[i];
    if (runs[i].contains("error")) {
      ++plan.counts.refused;
      std::string id, reason = grid::without_rule_id(runs[i].at("error"), id);
      plan.skips.push_back({.slug = cell.slug,
                            .rule = "refused",
                            .rule_id = id.empty() ? std::nullopt : std::optional(id),
                            .reason = std::move(reason)});
      continue;
    }
    const int64_t bytes = predicted_bytes(runs[i]), all = bytes * cell.world;
    const std::string text = "predicted memory of rank 0: " + print_bytes(bytes);
    if (arguments.prune && all > limit) {
      plan.skips.push_back({.slug = cell.slug,
                            .rule = "predicted_oom",
                            .reason = text + " on each of " + std::to_string(cell.world) +
                                      " ranks; " + print_bytes(limit) + " are there"});
      continue;
    }
    if (arguments.predict) {
      cell.notes.push_back(text);
      predictions += cell.slug + ": " + text + "\n";
    }
    kept.push_back(std::move(cell));
  }
  plan.cells = std::move(kept);
  return predictions;
}

void print_plan(const PlanArguments& arguments, const Context& context) {
  grid::PlanRequest request = plan_request(context, arguments.file);
  request.sets = arguments.sets;
  request.filter = arguments.filter;
  request.max_cells = arguments.max_cells;
  request.origins = !arguments.show.empty();
  grid::Plan plan = grid::plan(request);
  if (plan.tune) grid::plan_trials(request, plan);  // for its errors
  *context.err << render(plan.diagnostics);
  std::string predictions;
  if (arguments.deep || arguments.predict || arguments.prune) {
    predictions = judge_by_dry_runs(arguments, context, plan);
  }
  std::ostream& out = *context.out;
  if (request.origins) {
    out << cell_text(plan, arguments.show);
  } else if (context.json || arguments.format == "json") {
    out << plan_json(plan).dump(2) << "\n";
  } else if (arguments.format == "md") {
    out << plan_markdown(plan);
  } else {
    out << (context.verbosity < 0 ? counts_line(plan) + "\n" : plan_text(plan)) << predictions;
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
  command->add_flag("--deep", arguments->deep, "Assemble and step every cell on shapes alone");
  command->add_flag("--predict", arguments->predict, "The same, and predict the memory of rank 0");
  command->add_flag("--prune", arguments->prune, "The same, and leave out what would not fit");
  command->footer(R"(
Examples:
  assay plan experiments/matrix.yaml
  assay plan experiments/matrix.yaml --filter "precision.name == 'bf16'" --set train.steps=20
  assay plan experiments/quickstart.yaml --show llama3_none
  assay plan experiments/quickstart.yaml --predict)");
  command->callback([arguments, &context] { print_plan(*arguments, context); });
}

}  // namespace assay::cli
