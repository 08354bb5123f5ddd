// Flags to supervisor options; the table at the end.
#include "core/cli/supervise.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <set>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/cli/progress.h"
#include "core/host/filter.h"
#include "core/host/machine.h"
#include "core/host/study.h"
#include "core/host/supervisor.h"
#include "core/report/formats.h"
#include "core/report/model.h"
#include "core/store/reader.h"

namespace assay::cli {
namespace {

const std::set<std::string> kStates = {"queued", "oom",   "fail",    "timeout",
                                       "killed", "infra", "invalid", "ok"};

std::filesystem::path worker_executable() {
  const auto worker = executable_dir() / "assay-worker";
  if (std::filesystem::exists(worker)) return worker;
  throw InfrastructureError(
      "there is no assay-worker beside assay in '" + executable_dir().string() + "'",
      "build it: cmake --build build --target assay-worker");
}

int terminal_width(int fd) {
  winsize size{};
  constexpr int kUsual = 100;
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

ProgressStyle style_of(const Context& context) {
  return {.redraw = context.err == &std::cerr && isatty(STDERR_FILENO) == 1,
          .json = context.json,
          .quiet = context.verbosity < 0,
          .width = terminal_width(STDERR_FILENO)};
}

std::vector<std::string> command_line() {
  const std::string text = read_file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (size_t start = 0, end; (end = text.find('\0', start)) != std::string::npos;
       start = end + 1) {
    words.push_back(text.substr(start, end - start));
  }
  return words;
}

host::SupervisorOptions options_of(const store::Store& store, int64_t study_id,
                                   const grid::RunKeys& keys, const SuperviseFlags& flags) {
  host::SupervisorOptions options{.study_id = study_id,
                                  .worker = worker_executable(),
                                  .keys = keys,
                                  .use_template = !flags.no_template,
                                  .fail_fast = flags.fail_fast,
                                  .join = flags.join,
                                  .strict_oom = flags.strict_oom,
                                  .argv = command_line(),
                                  .resume_from = flags.resume_from};
  options.no_pair_ends_after = flags.no_pair_ends_after;
  if (!flags.only.empty()) options.only = flags.only;
  if (flags.filter.empty()) return options;
  const store::Reader reader(store.file());
  const auto table = reader.query(
      "SELECT DISTINCT c.config_json FROM study_cells s JOIN cells c USING(cell_id)"
      " WHERE s.study_id=?1",
      {store::Value(study_id)});
  std::vector<std::string> configs;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    configs.push_back(*store::text(table.at(i, "config_json")));
  }
  options.select = host::run_filter(flags.filter, configs);
  return options;
}

void print_table(const store::Store& store, const std::string& study, const Context& context) {
  const store::Reader reader(store.file());
  const report::Model model = report::build_model(reader, {.study = study});
  *context.out << report::terminal(
      model, {.width = terminal_width(STDOUT_FILENO), .color = context.colored(*context.out)});
}

}  // namespace

void add_supervise_flags(CLI::App& command, SuperviseFlags& flags) {
  command.add_option("--filter", flags.filter, "Only runs of cells for which this holds")
      ->type_name("EXPR");
  command
      .add_option("--only", flags.only,
                  "Only runs in these states (default: queued,killed,infra); they run again")
      ->delimiter(',')
      ->check(CLI::IsMember(kStates))
      ->type_name("STATE,...");
  command.add_flag("--fail-fast", flags.fail_fast, "Start nothing more after a bad run");
  command.add_flag("--join", flags.join, "Work beside another supervisor of the study");
  command.add_option("--devices", flags.devices, "Devices to use (default: run.devices, else all)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command.add_flag("--no-template", flags.no_template, "Start every worker by exec (slower)");
  command
      .add_option("--resume-from", flags.resume_from,
                  "Start from a checkpoint: a folder, or `latest` or a step of each run's own")
      ->type_name("DIR|latest|STEP");
  command.add_flag("--strict-oom", flags.strict_oom, "Running out of memory makes the exit code 1");
}

void supervise_runs(store::Store& store, int64_t study_id, const std::string& study,
                    grid::RunKeys keys, std::vector<int64_t> runs, const SuperviseFlags& flags,
                    Context& context) {
  if (flags.devices > 0) keys.devices = flags.devices;
  Progress progress(*context.out, *context.err, style_of(context));
  host::SupervisorOptions options = options_of(store, study_id, keys, flags);
  options.study = study;
  options.runs = std::move(runs);
  const host::SupervisorResult result = host::Supervisor(store, options, progress).run();
  context.exit_code = result.exit_code;
  progress.finish(result.totals, result.exit_code);
}

void supervise(store::Store& store, int64_t study_id, const std::string& study, grid::RunKeys keys,
               const SuperviseFlags& flags, Context& context) {
  if (flags.devices > 0) keys.devices = flags.devices;
  Progress progress(*context.out, *context.err, style_of(context));
  host::Supervisor supervisor(store, options_of(store, study_id, keys, flags), progress);
  const host::SupervisorResult result = supervisor.run();
  context.exit_code = result.exit_code;
  progress.finish(result.totals, result.exit_code);
  if (flags.table && !context.json && context.verbosity >= 0) print_table(store, study, context);
}

}  // namespace assay::cli
