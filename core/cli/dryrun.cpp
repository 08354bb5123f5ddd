// assay dryrun FILE: one rank of a cell takes a step on shapes alone, at any world size.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <ostream>

#include "core/base/units.h"
#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/cli/plan_text.h"
#include "core/plugin/worker_question.h"

namespace assay::cli {
namespace {

using nlohmann::json;

constexpr double kLimit_s = 600;

struct DryRunArguments {
  std::filesystem::path file;
  std::string cell;
  int rank = 0;
  std::vector<std::string> sets;
};

// The layout may be larger than this machine: nothing of it runs here.
grid::Plan plan_for_any_machine(const DryRunArguments& arguments, const Context& context) {
  grid::PlanRequest request = plan_request(context, arguments.file);
  request.machine.devices = std::numeric_limits<int>::max();
  request.sets = arguments.sets;
  request.sets.push_back("comm=fake");
  request.sets.push_back("run.devices=1000000");
  return grid::plan(request);
}

json ask(const grid::Cell& cell, int rank) {
  if (rank < 0 || rank >= cell.world) {
    throw Error("--rank " + std::to_string(rank) + " is not a rank of this cell",
                "0 to " + std::to_string(cell.world - 1));
  }
  json answer = ask_worker(
      "dryrun", {{"plugins", cell.plugin_files}, {"config", cell.config()}, {"rank", rank}},
      kLimit_s);
  answer["schema_version"] = 1;
  answer["cell"] = cell.slug;
  return answer;
}

std::string text_of(const json& run) {
  std::string text = fmt::format(
      "{}: rank {} of {}, {} parameters, {} of them stored here\n"
      "built in {:.2f} s, one step in {:.2f} s (shapes alone; says nothing about speed)\n\n",
      run.at("cell").get<std::string>(), run.at("rank").get<int>(), run.at("world").get<int64_t>(),
      run.at("parameters").get<int64_t>(), run.at("parameters_on_rank").get<int64_t>(),
      run.at("build_s").get<double>(), run.at("step_s").get<double>());
  text += "memory of this rank\n";
  int64_t total = 0;
  for (const char* category :
       {"parameters", "gradients", "optimizer", "unsharded", "activations"}) {
    const int64_t bytes = run.at("bytes").at(category);
    total += bytes;
    text += fmt::format("  {:<12} {:>12}\n", category, print_bytes(bytes));
  }
  text += fmt::format("  {:<12} {:>12}\n\n", "sum", print_bytes(total));
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

void dry_run(const DryRunArguments& arguments, const Context& context) {
  const grid::Plan plan = plan_for_any_machine(arguments, context);
  *context.err << render(plan.diagnostics);
  json runs = json::array();
  for (const grid::Cell& cell : plan.cells) {
    const bool wanted = arguments.cell.empty() || &cell == &find_cell(plan, arguments.cell);
    if (!wanted) continue;
    runs.push_back(ask(cell, arguments.rank));
    if (!context.json) *context.out << text_of(runs.back()) << "\n" << std::flush;
  }
  if (context.json) *context.out << runs.dump(2) << "\n";
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
