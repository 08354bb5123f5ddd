// assay import DIR...: spools of ranks that torchrun or Slurm started, each row exactly once.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>

#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/host/spool_folder.h"
#include "core/store/store.h"

namespace assay::cli {
namespace {

constexpr int kNothing = 4;
constexpr auto kFollowPeriod = std::chrono::seconds(2);

struct ImportArguments {
  std::vector<std::filesystem::path> folders{};
  std::string study{};
  bool follow = false;
};

void print(const host::ImportedGroup& group, const Context& context) {
  if (context.json) {
    *context.out << nlohmann::json{{"event", "imported"}, {"schema_version", 1},
                                   {"cell", group.slug},  {"run_id", group.run_id},
                                   {"rows", group.rows},  {"state", group.state},
                                   {"note", group.note}}
                        .dump()
                 << std::endl;
    return;
  }
  *context.out << "run " << group.run_id << "  " << group.slug << "  " << group.state << "  "
               << group.rows << " new rows" << (group.note.empty() ? "" : "  (" + group.note + ")")
               << std::endl;
}

/// True while a rank has not closed its spool.
bool import_once(const ImportArguments& arguments, Context& context,
                 host::SpoolImporter& importer) {
  bool open = false, any = false;
  for (const auto& folder : arguments.folders) {
    for (const host::SpoolGroup& group : host::find_spool_groups(folder)) {
      const host::ImportedGroup imported = importer.import(group);
      open |= imported.state == "running";
      any = true;
      if (imported.rows > 0 || !arguments.follow) print(imported, context);
    }
  }
  if (!any) context.exit_code = kNothing;
  return open;
}

void import_folders(const ImportArguments& arguments, Context& context) {
  store::Store store(context.database);
  host::SpoolImporter importer(store, arguments.study);
  while (import_once(arguments, context, importer) && arguments.follow) {
    std::this_thread::sleep_for(kFollowPeriod);
  }
  if (context.exit_code == kNothing) *context.err << "no spool of such ranks was found\n";
}

}  // namespace

void add_import(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command =
      app.add_subcommand("import", "Take in spools of ranks that torchrun or Slurm started");
  command->add_option("folders", arguments->folders, "Folders with *.jl, searched whole")
      ->required()
      ->type_name("DIR...");
  command->add_option("--study", arguments->study, "Study to put them in (default: as they say)");
  command->add_flag("--follow", arguments->follow, "Go on until every rank has closed its spool");
  command->footer(R"(
Examples:
  assay import /shared/spools/job-4711
  assay import /shared/spools/job-4711 --follow)");
  command->callback([arguments, &context] { import_folders(*arguments, context); });
}

}  // namespace assay::cli
