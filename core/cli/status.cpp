// assay status [STUDY]: how far a study is.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <ostream>
#include <thread>

#include "core/cli/commands.h"
#include "core/cli/status_view.h"
#include "core/cli/view.h"

namespace assay::cli {
namespace {

constexpr std::chrono::seconds kWatchInterval{1};
constexpr const char* kHomeAndClear = "\x1b[H\x1b[J";

struct StatusArguments {
  std::string study{};
  bool watch = false;
  bool failed = false;
};

/// Until nothing is left to run, or nobody is left to run it.
void watch(const store::Reader& reader, const StatusArguments& arguments, const Context& context) {
  std::string shown;
  while (true) {
    const StudyStatus status = load_status(reader, chosen_study(reader, arguments.study));
    const std::string text =
        context.json ? status_json(status).dump() + "\n" : status_text(status, arguments.failed);
    const bool redraw = terminal_on_stdout() && !context.json;
    const std::string key = redraw ? text : nlohmann::json(status.counts).dump();  // ages apart
    if (key != shown) *context.out << (redraw ? kHomeAndClear : "") << text << std::flush;
    shown = key;
    if (status.left() == 0 || !status.supervised()) return;
    std::this_thread::sleep_for(kWatchInterval);
  }
}

void show(const StatusArguments& arguments, const Context& context) {
  const store::Reader reader(context.database);
  if (arguments.watch) return watch(reader, arguments, context);
  const StudyStatus status = load_status(reader, chosen_study(reader, arguments.study));
  if (context.json)
    *context.out << status_json(status).dump(2) << "\n";
  else
    *context.out << status_text(status, arguments.failed);
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* command = app.add_subcommand("status", "Counts per state, what runs, what failed");
  add_study_argument(*command, arguments->study);
  command->add_flag("--watch", arguments->watch, "Show changes until the study stops");
  command->add_flag("--failed", arguments->failed, "Only runs that ended badly, with the reason");
  command->footer(R"(
Examples:
  assay status
  assay status matrix --failed
  assay status --watch)");
  command->callback([arguments, &context] { show(*arguments, context); });
}

}  // namespace assay::cli
