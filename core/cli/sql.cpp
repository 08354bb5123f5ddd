// assay sql [QUERY]: read-only SQL over the results, one query or a shell.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "assay/error.h"
#include "core/base/diagnostic.h"
#include "core/base/units.h"
#include "core/cli/commands.h"
#include "core/cli/table_text.h"
#include "core/cli/view.h"

namespace assay::cli {
namespace {

constexpr double kNanoseconds = 1e-9;

constexpr const char* kShellHelp =
    "End a statement with ';'.  .views: the public tables  .schema NAME: its columns  .quit\n";

struct SqlArguments {
  std::string query{};
  std::string timeout = "30s";
  bool csv = false;
};

void answer(const store::Reader& reader, const std::string& sql, const SqlArguments& arguments,
            const Context& context) {
  const store::Table table = reader.query(sql);
  if (context.json)
    *context.out << table_json(table).dump() << "\n";
  else if (arguments.csv)
    *context.out << table_csv(table);
  else
    *context.out << table_text(table);
}

/// Shell words become queries; nothing when the line is none.
std::optional<std::string> shell_query(const std::string& line) {
  if (line == ".views" || line == ".tables") {
    return "SELECT name FROM sqlite_schema WHERE type='view' ORDER BY name";
  }
  if (line.starts_with(".schema ")) {
    std::string name = line.substr(8);
    std::erase(name, '\'');
    return "SELECT name AS \"column\", type FROM pragma_table_info('" + name + "')";
  }
  return std::nullopt;
}

void print_problem(const Error& error, const Context& context) {
  Diagnostic diagnostic{.text = error.what()};
  if (!error.hint().empty()) diagnostic.hints.push_back(error.hint());
  *context.err << render(diagnostic);
}

/// Statements from standard input. On a terminal a mistake is printed and the shell goes on.
void shell(const store::Reader& reader, const SqlArguments& arguments, Context& context,
           std::istream& in, bool interactive) {
  std::string pending, line;
  const auto prompt = [&] {
    if (interactive) *context.err << (pending.empty() ? "assay> " : "   ... ") << std::flush;
  };
  const auto run = [&](const std::string& sql) {
    try {
      answer(reader, sql, arguments, context);
    } catch (const Error& error) {
      if (!interactive) throw;
      print_problem(error, context);
    }
  };
  if (interactive) *context.err << kShellHelp;
  for (prompt(); std::getline(in, line); prompt()) {
    if (pending.empty() && (line == ".quit" || line == ".exit")) return;
    if (pending.empty() && line == ".help")
      *context.err << kShellHelp;
    else if (const auto query = pending.empty() ? shell_query(line) : std::nullopt)
      run(*query);
    else if (pending += line + "\n"; store::is_complete(pending))
      run(std::exchange(pending, ""));
    else if (pending == "\n")
      pending.clear();
  }
  if (pending.find_first_not_of(" \n\t") != std::string::npos) run(pending);
}

void sql(const SqlArguments& arguments, Context& context) {
  const auto timeout_ns = parse_duration(arguments.timeout);
  if (!timeout_ns) {
    throw Error("--timeout must be a time like 30s or 2m, or 0 for none; got '" +
                arguments.timeout + "'");
  }
  store::Reader reader(context.database);
  reader.set_timeout(static_cast<double>(*timeout_ns) * kNanoseconds);
  if (!arguments.query.empty()) return answer(reader, arguments.query, arguments, context);
  shell(reader, arguments, context, std::cin, isatty(STDIN_FILENO) == 1);
}

}  // namespace

void add_sql(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<SqlArguments>();
  CLI::App* command = app.add_subcommand("sql", "Read-only SQL over the results");
  command->add_option("query", arguments->query,
                      "One statement (default: a shell on the terminal)");
  command->add_flag("--csv", arguments->csv, "Comma-separated values");
  command
      ->add_option("--timeout", arguments->timeout, "Stop longer queries (default 30s, 0 = never)")
      ->type_name("TIME");
  command->footer(R"(
Views: v_run, v_cell, v_step, v_memory, v_pair, v_verdict (docs/metrics.md). Aggregates median(x)
and p10(x) are there.

Examples:
  assay sql "SELECT slug, state, tokens_per_s FROM v_cell WHERE study='quickstart'"
  assay sql --csv "SELECT step, loss FROM v_step WHERE run_id=1 AND rank=0" > loss.csv
  assay sql "SELECT state, reason, count(*) n FROM v_run GROUP BY state, reason")");
  command->callback([arguments, &context] { sql(*arguments, context); });
}

}  // namespace assay::cli
