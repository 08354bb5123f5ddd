// assay history CELL: all runs of a configuration over time, and where its figures changed.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <ostream>
#include <sstream>

#include "assay/error.h"
#include "core/cli/commands.h"
#include "core/cli/view.h"
#include "core/report/history.h"

namespace assay::cli {
namespace {

struct HistoryArguments {
  std::string cell{}, metric = "tokens_per_s", since{};
};

/// "2026-11-30", the start of that day in UTC.
int64_t parse_date(const std::string& text) {
  if (text.empty()) return 0;
  int year = 0, month = 0, day = 0;
  char dash = 0, other = 0, rest = 0;
  std::istringstream in(text);
  in >> year >> dash >> month >> other >> day;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!in || dash != '-' || other != '-' || in >> rest || !date.ok()) {
    throw Error("--since must be a date like 2026-11-30; got '" + text + "'");
  }
  const auto since = std::chrono::sys_days(date).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since).count();
}

void show(const HistoryArguments& arguments, const Context& context) {
  const store::Reader reader(context.database);
  const report::History history =
      report::load_history(reader, arguments.cell, arguments.metric, parse_date(arguments.since));
  if (context.json) {
    *context.out << history_json(history).dump() << "\n";
  } else {
    *context.out << history_text(history);
  }
}

}  // namespace

void add_history(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<HistoryArguments>();
  CLI::App* command =
      app.add_subcommand("history", "All runs of a configuration, and where they changed");
  command
      ->add_option("cell", arguments->cell, "Slug, STUDY/SLUG, or 6 digits of a cell or config id")
      ->required();
  command->add_option("--metric", arguments->metric, "Figure (default: tokens_per_s)")
      ->type_name("NAME");
  command->add_option("--since", arguments->since, "Runs that started on this day or later")
      ->type_name("DATE");
  command->footer(R"(
Runs count together while their resolved configuration and data are equal, whatever study or build
they come from; machines are never mixed.

Examples:
  assay history adamw_fused_none
  assay history quickstart/adamw_fused_none --metric step_p50_s --since 2026-11-01)");
  command->callback([arguments, &context] { show(*arguments, context); });
}

}  // namespace assay::cli
