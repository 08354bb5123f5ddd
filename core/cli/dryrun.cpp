// assay dryrun FILE: one rank of a cell takes a step on shapes alone, at any world size.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "core/base/units.h"
#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/cli/dry_run_cells.h"
#include "core/cli/plan_text.h"

namespace assay::cli {
namespace {

using nlohmann::json;

constexpr int kRefused = 1;

struct DryRunArguments {
  std::filesystem::path file;
  std::string cell;
  int rank = 0;
  std::vector<std::string> sets;
};

std::string refusal_text(const json& run) {
  return fmt::format("{}: refused: {}\n", run.at("cell").get<std::string>(),
                     run.at("error").get<std::string>());
}

std::string text_of(const json& run) {
  std::string text = fmt::format(
      "{}: rank {} of {}, {} parameters, {} of them stored here\n"
      "built in {:.2f} s, one step in {:.2f} s (shapes alone; says nothing about speed)\n\n",
      run.at("cell").get<std::string>(), run.at("rank").get<int>(), run.at("world").get<int64_t>(),
      run.at("parameters").get<int64_t>(), run.at("parameters_on_rank").get<int64_t>(),
      run.at("build_s").get<double>(), run.at("step_s").get<double>());
  text += "memory of this rank\n";
  for (const char* category :
       {"parameters", "gradients", "optimizer", "unsharded", "activations"}) {
    text += fmt::format("  {:<12} {:>12}\n", category,
                        print_bytes(run.at("bytes").at(category).get<int64_t>()));
  }
  text += fmt::format("  {:<12} {:>12}\n\n", "sum", print_bytes(predicted_bytes(run)));
  text += fmt::format("{:<14} {:<14} {:<10} {:<6} {:>8} {:>12} {:>12}\n", "collectives", "",
                      "phase", "dtype", "calls", "payload", "wire");
  for (const json& row : run.at("collectives")) {
    text += fmt::format("  {:<12} {:<14} {:<10} {:<6} {:>8} {:>12} {:>12}\n",
                        row.at("grp").get<std::string>(), row.at("op").get<std::string>(),
                        row.at("phase").get<std::string>(), row.at("dtype").get<std::string>(),
                        row.at("count").get<int64_t>(),
                        print_bytes(row.at("payload_bytes").get<int64_t>()),
                        print_bytes(row.at("wire_bytes").get<int64_t>()));
  }
  return text;
}

void dry_run(const DryRunArguments& arguments, Context& context) {
  const grid::Plan plan = plan_for_any_machine(arguments.file, arguments.sets, context);
  *context.err << render(plan.diagnostics);
  std::vector<const grid::Cell*> cells;
  for (const grid::Cell& cell : plan.cells) cells.push_back(&cell);
  if (!arguments.cell.empty()) cells = {&find_cell(plan, arguments.cell)};
  json runs = json::array();
  for (json& run : dry_run_cells(cells, arguments.rank)) {
    const bool refused = run.contains("error");
    if (refused) context.exit_code = kRefused;
    if (!context.json) *context.out << (refused ? refusal_text(run) : text_of(run)) << "\n";
    runs.push_back(std::move(run));
  }
  if (context.json) *context.out << json{{"schema_version", 1}, {"runs", runs}}.dump(2) << "\n";
}

}  // namespace

void add_dryrun(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<DryRunArguments>();
  CLI::App* command = app.add_subcommand(
      "dryrun", "Bytes and memory of one rank of a layout of any size; nothing is trained");
  command->add_option("file", arguments->file, "Study (YAML)")->required();
  command->add_option("--cell", arguments->cell, "One cell (default: every cell of the plan)")
      ->type_name("SLUG|ID");
  command->add_option("--rank", arguments->rank, "Rank (default 0)")->type_name("N");
  command->add_option("--set", arguments->sets, "KEY=VALUE over the study's base")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  command->footer(R"(
Examples:
  assay dryrun experiments/scale.yaml
  assay dryrun experiments/scale.yaml --cell 70b --rank 511
  assay dryrun experiments/scale.yaml --set mesh.tp=4 --json)");
  command->callback([arguments, &context] { dry_run(*arguments, context); });
}

}  // namespace assay::cli
