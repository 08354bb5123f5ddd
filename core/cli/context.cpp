// The command line's common part: global flags, the commands, and how errors become exit codes.
#include "core/cli/context.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "assay/error.h"
#include "core/base/diagnostic.h"
#include "core/base/nearest.h"
#include "core/cli/commands.h"
#include "core/evidence/gate.h"

namespace assay::cli {
namespace {

constexpr int kBadInput = 2;
constexpr int kInfrastructure = 4;

constexpr std::string_view kCompletionRequest = "__complete";  // words follow as they are typed

constexpr const char* kExamples = R"(
Examples:
  assay plan experiments/quickstart.yaml      what would run, and what is refused and why
  assay run experiments/quickstart.yaml       run it; the results go to results/assay.db
  assay resume                                go on after a stop or a crash
  assay compare quickstart                    the recipes of a study side by side
  assay sql "SELECT * FROM v_cell"            ask the database yourself
  assay COMMAND --help                        flags and examples of one command)";

void add_global_flags(CLI::App& app, Context& context) {
  app.add_option("--db", context.database, "Results database (default: results/assay.db)");
  app.add_flag("--json", context.json, "Machine-readable output");
  app.add_flag_callback(
      "-q,--quiet", [&context] { context.verbosity = -1; }, "Only failures");
  app.add_flag_callback(
      "-v,--verbose", [&context] { context.verbosity = 1; }, "More detail");
  const auto set_color = [&context](const std::string& when) {
    context.color = when == "always"  ? Color::always
                    : when == "never" ? Color::never
                                      : Color::automatic;
  };
  app.add_option_function<std::string>("--color", set_color, "Colour: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""))
      ->type_name("WHEN");
  app.add_option("--plugin-path", context.plugin_path, "More folders with *.assay.so (colon list)")
      ->delimiter(':');
}

/// Names that the user may have meant: commands of the deepest command reached, or its flags.
std::vector<std::string> candidates(const CLI::App& app, bool flags) {
  std::vector<std::string> names;
  if (!flags) {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (!command->get_group().empty()) names.push_back(command->get_name());
    }
    return names;
  }
  for (const CLI::App* level = &app; level; level = level->get_parent()) {
    for (const CLI::Option* option : level->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

const CLI::App& deepest(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.back());
}

void print_usage_error(const CLI::App& app, const CLI::ParseError& error, std::ostream& err) {
  const CLI::App& command = deepest(app);
  Diagnostic diagnostic{.place = "command line", .text = error.what()};
  const std::vector<std::string> rest = app.remaining(true);
  if (!rest.empty()) {
    const std::string word = rest.front().substr(0, rest.front().find('='));
    const bool flag = word.starts_with("-");
    diagnostic.text = "unknown " + std::string(flag ? "flag" : "command") + " '" + word + "'";
    const std::string near = did_you_mean(nearest(word, candidates(command, flag)));
    if (!near.empty()) diagnostic.hints.push_back(near);
  }
  if (diagnostic.hints.empty()) {
    std::string words;
    for (const CLI::App* level = &command; level != &app; level = level->get_parent()) {
      words = " " + level->get_name() + words;
    }
    diagnostic.hints.push_back("assay" + words + " --help");
  }
  err << render(diagnostic);
}

int print_error(std::ostream& err, const std::string& text, const std::string& hint, int code) {
  Diagnostic diagnostic{.text = text};
  if (!hint.empty()) diagnostic.hints.push_back(hint);
  err << render(diagnostic);
  return code;
}

int guarded(CLI::App& app, int argc, const char* const* argv, Context& context) {
  std::ostream& err = *context.err;
  try {
    app.parse(argc, argv);
    return context.exit_code;
  } catch (const CLI::CallForHelp&) {
    *context.out << deepest(app).help();
    return 0;
  } catch (const CLI::CallForVersion& version) {
    *context.out << version.what() << "\n";
    return 0;
  } catch (const CLI::ParseError& error) {
    print_usage_error(app, error, err);
    return kBadInput;
  } catch (const DiagnosticError& error) {
    err << render(error.diagnostics());
    return kBadInput;
  } catch (const InfrastructureError& error) {
    return print_error(err, error.what(), error.hint(), kInfrastructure);
  } catch (const Error& error) {
    return print_error(err, error.what(), error.hint(), kBadInput);
  } catch (const std::exception& error) {
    return print_error(err, error.what(), "please report this with the command line",
                       kInfrastructure);
  }
}

}  // namespace

bool Context::colored(const std::ostream& stream) const {
  if (color != Color::automatic) return color == Color::always;
  const char* no_color = std::getenv("NO_COLOR");  // no-color.org
  if (no_color && *no_color != '\0') return false;
  const int fd = &stream == &std::cout ? STDOUT_FILENO : &stream == &std::cerr ? STDERR_FILENO : -1;
  return fd >= 0 && ::isatty(fd) == 1;
}

Context default_context() {
  Context context;
  context.out = &std::cout;
  context.err = &std::cerr;
  context.components = [](const std::vector<std::filesystem::path>& own) {
    return grid::components_of(Catalogue::load(plugin_folders(own), worker_describer()));
  };
  context.exact_components = [](const std::vector<std::filesystem::path>& folders) {
    return grid::components_of(Catalogue::load(folders, worker_describer()));
  };
  context.binaries = grid::installed_binaries;
  context.machine = grid::this_machine;
  return context;
}

grid::PlanRequest plan_request(const Context& context, const std::filesystem::path& file) {
  grid::PlanRequest request;
  request.file = file;
  request.machine = context.machine();
  request.binaries = context.binaries();
  request.hash_file = grid::cached_file_hash;
  request.check_gate = evidence::check_gate;
  auto kept = std::make_shared<std::unique_ptr<grid::Components>>();
  request.components =
      [context, kept](std::vector<std::filesystem::path> folders) -> const grid::Components& {
    const auto& more = context.plugin_path;
    folders.insert(folders.end(), more.begin(), more.end());
    *kept = context.components(folders);
    return **kept;
  };
  return request;
}

void add_commands(CLI::App& app, Context& context) {
  add_plan(app, context);
  add_dryrun(app, context);
  add_run(app, context);
  add_resume(app, context);
  add_status(app, context);
  add_log(app, context);
  add_compare(app, context);
  add_diff(app, context);
  add_replay(app, context);
  add_explain(app, context);
  add_gate(app, context);
  add_report(app, context);
  add_history(app, context);
  add_sql(app, context);
  add_export(app, context);
  add_import(app, context);
  add_db(app, context);
  add_gc(app, context);
  add_checkpoint(app, context);
  add_plugins(app, context);
  add_schedule(app, context);
  add_selftest(app, context);
  add_doctor(app, context);
  add_completion(app, context);
}

int run_cli(int argc, const char* const* argv, Context& context) {
  CLI::App app("A test bed for LLM training recipes.", "assay");
  app.require_subcommand(1);
  app.fallthrough();  // global flags may stand after the command
  app.footer(kExamples);
  add_global_flags(app, context);
  add_commands(app, context);
  if (argc > 1 && std::string_view(argv[1]) == kCompletionRequest) {
    complete(app, {argv + 2, argv + argc}, *context.out);
    return 0;
  }
  return guarded(app, argc, argv, context);
}

}  // namespace assay::cli
