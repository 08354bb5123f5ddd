// One function per command, each in the file of its name; it adds a subcommand with its callback.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace assay::cli {

struct Context;

void add_plan(CLI::App& app, Context& context);
void add_dryrun(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_resume(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_log(CLI::App& app, Context& context);
void add_compare(CLI::App& app, Context& context);
void add_diff(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_selftest(CLI::App& app, Context& context);
void add_gate(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_history(CLI::App& app, Context& context);
void add_sql(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_db(CLI::App& app, Context& context);
void add_import(CLI::App& app, Context& context);
void add_gc(CLI::App& app, Context& context);
void add_checkpoint(CLI::App& app, Context& context);
void add_plugins(CLI::App& app, Context& context);
void add_schedule(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);

/// The words that may stand in place of the last of `words`, one a line: what the scripts of
/// `assay completion` ask for. It walks the registered commands; nothing is listed by hand.
void complete(const CLI::App& root, std::vector<std::string> words, std::ostream& out);

/// Registers every command above that this build has.
void add_commands(CLI::App& app, Context& context);

}  // namespace assay::cli
