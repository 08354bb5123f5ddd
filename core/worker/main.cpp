// assay-worker: one rank of a cell, the template that forks ranks, and descriptions of plugins.
#include <c10/util/Exception.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "assay/error.h"
#include "core/base/diagnostic.h"
#include "core/base/files.h"
#include "core/base/worker_protocol.h"
#include "core/sdk/loader.h"
#include "core/train/dry_run.h"
#include "core/worker/describe.h"
#include "core/worker/document.h"
#include "core/worker/environment.h"
#include "core/worker/run.h"
#include "core/worker/template.h"

namespace assay::worker {
namespace {

struct Arguments {
  std::string file{};
  int rank = -1;
  int events_fd = -1;
  int socket_fd = -1;
};

int run_command(const Arguments& arguments) {
  const auto cell = nlohmann::json::parse(read_file(arguments.file));
  int rank = arguments.rank;
  if (rank < 0) {
    const int world = cell.value("world", 1);
    rank = rank_from_environment(process_variables(), world);
  }
  return run_rank(cell, rank, arguments.events_fd);
}

nlohmann::json dry_run_or_reason(const nlohmann::json& run) {
  try {
    return train::dry_run(run.at("config"), run.at("rank").get<int>());
  } catch (const Error& e) {
    return {{"error", e.what()}, {"hint", e.hint()}};
  } catch (const c10::Error& e) {
    return {{"error", e.what_without_backtrace()}, {"hint", ""}};
  } catch (const std::exception& e) {
    return {{"error", e.what()}, {"hint", ""}};
  }
}

/// {"plugins": [...], "runs": [{"config", "rank"}]} -> {"runs": [a dry run or {"error", "hint"}]}.
int dry_run_command(const Arguments& arguments) {
  print_document([&] {
    const auto request = nlohmann::json::parse(read_file(arguments.file));
    load_plugins(request.at("plugins").get<std::vector<std::filesystem::path>>());
    nlohmann::json runs = nlohmann::json::array();
    for (const auto& run : request.at("runs")) runs.push_back(dry_run_or_reason(run));
    return nlohmann::json{{"runs", runs}};
  });
  shutdown_plugins();
  return 0;
}

int dispatch(int argc, char** argv) {
  CLI::App app("Runs one rank of a cell. Started by `assay run`, torchrun or srun.",
               "assay-worker");
  app.require_subcommand(1);
  Arguments arguments;
  CLI::App* run = app.add_subcommand("run", "Train one rank of CELL.json");
  run->add_option("cell", arguments.file, "What to run, as `assay run` writes it")->required();
  run->add_option("--rank", arguments.rank, "Rank (default: torchrun's or Slurm's variables)");
  run->add_option("--events-fd", arguments.events_fd, "Pipe of the supervisor");
  CLI::App* serve = app.add_subcommand("template", "Fork ranks for a supervisor");
  serve->add_option("--socket-fd", arguments.socket_fd, "Socket of the supervisor")->required();
  CLI::App* describe = app.add_subcommand("describe", "Print what plugins say of themselves");
  describe->add_option("request", arguments.file, "The request as JSON")->required();
  CLI::App* dry = app.add_subcommand("dryrun", "One rank of a layout on shapes alone");
  dry->add_option("request", arguments.file, "The request as JSON")->required();
  CLI11_PARSE(app, argc, argv);
  if (run->parsed()) return run_command(arguments);
  if (describe->parsed()) return describe_command(arguments.file);
  if (dry->parsed()) return dry_run_command(arguments);
  return serve_template(
      arguments.socket_fd,
      {.load = load_for_fork, .before_fork = release_thread_pools, .child = run_rank});
}

int guarded_main(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const DiagnosticError& e) {
    std::cerr << render(e.diagnostics());
  } catch (const Error& e) {
    std::cerr << render(Diagnostic{.place = "assay-worker", .text = e.what(), .hints = {e.hint()}});
  } catch (const std::exception& e) {
    std::cerr << "assay-worker: error: " << e.what() << '\n';
  }
  return kExitUsage;
}

}  // namespace
}  // namespace assay::worker

int main(int argc, char** argv) {
  const int code = assay::worker::guarded_main(argc, argv);
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);  // a plugin's static destructors are not the cell's result
}
