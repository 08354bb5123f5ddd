// assay doctor: what of this machine would spoil runs or their timings.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "core/base/files.h"
#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/host/doctor.h"

namespace assay::cli {
namespace {

constexpr int kDoubtful = 1, kCannotRun = 4;

const char* word(host::Health health) {
  switch (health) {
    case host::Health::good:
      return "ok";
    case host::Health::warning:
      return "warning";
    default:
      return "problem";
  }
}

void examine(Context& context) {
  const auto findings =
      host::examine({.results = std::filesystem::absolute(context.database).parent_path(),
                     .worker = executable_dir() / "assay-worker"});
  nlohmann::json list = nlohmann::json::array();
  for (const host::Finding& finding : findings) {
    if (finding.health == host::Health::warning && context.exit_code == 0) {
      context.exit_code = kDoubtful;
    }
    if (finding.health == host::Health::problem) context.exit_code = kCannotRun;
    list.push_back({{"topic", finding.topic},
                    {"health", word(finding.health)},
                    {"text", finding.text},
                    {"advice", finding.advice}});
    if (context.json) continue;
    if (context.verbosity < 0 && finding.health == host::Health::good) continue;
    *context.out << fmt::format("{:<8} {:<14} {}\n", word(finding.health), finding.topic,
                                finding.text);
    if (!finding.advice.empty()) *context.out << fmt::format("{:>25}{}\n", "-> ", finding.advice);
  }
  if (context.json) {
    *context.out << nlohmann::json{{"schema_version", 1}, {"findings", list}}.dump(2) << "\n";
  }
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("doctor", "Check this machine: disk, clock, load, locks");
  command->footer(R"(
Exit code: 0 good, 1 timings would be doubtful, 4 runs cannot start.

Example:
  assay doctor)");
  command->callback([&context] { examine(context); });
}

}  // namespace assay::cli
