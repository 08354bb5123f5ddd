// assay export STUDY --out DIR: one folder with a study's results, logs and spools.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/cli/commands.h"
#include "core/cli/view.h"
#include "core/store/merge.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using store::integer;
using store::text;

struct ExportArguments {
  std::string study{};
  fs::path out{};
};

void require_new(const fs::path& folder) {
  if (!fs::exists(folder / "assay.db")) return;
  throw Error("'" + (folder / "assay.db").string() + "' exists; an export never overwrites",
              "choose an empty folder with --out DIR");
}

/// Files of attempts, found before their paths are changed; those that are gone are counted.
struct Copied {
  int64_t files = 0, missing = 0;
};

void copy_one(const fs::path& from, const fs::path& folder, Copied& copied) {
  std::error_code error;
  fs::create_directories(folder, error);
  const bool done = !error && fs::copy_file(from, folder / from.filename(),
                                            fs::copy_options::skip_existing, error);
  ++(done ? copied.files : copied.missing);
}

Copied copy_files(const store::Store& store, const fs::path& folder) {
  Copied copied;
  const store::Table rows = store.query(
      "SELECT attempt_id, log_path path, 1 log FROM attempts WHERE log_path IS NOT NULL"
      " UNION ALL SELECT attempt_id, path, 0 FROM spool_files");
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const fs::path from = *text(rows.at(i, "path"));
    const fs::path to = folder / std::to_string(*integer(rows.at(i, "attempt_id")));
    copy_one(from, to, copied);
    if (integer(rows.at(i, "log")) != 1 || !fs::is_directory(from.parent_path())) continue;
    for (const auto& beside : fs::directory_iterator(from.parent_path())) {  // the other ranks
      const std::string name = beside.path().filename().string();
      if (beside.path() != from && (name.ends_with(".log") || name == "cell.json")) {
        copy_one(beside.path(), to, copied);
      }
    }
  }
  return copied;
}

void export_study(const ExportArguments& arguments, const Context& context) {
  const store::Reader reader(context.database);
  const store::StudyInfo study = chosen_study(reader, arguments.study);
  require_new(arguments.out);
  store::Store copy(arguments.out / "assay.db");
  const store::MergeResult merged = store::merge(copy, context.database, study.name);
  const Copied copied = copy_files(copy, arguments.out / "runs");
  store::relocate_logs(copy, "runs");
  const auto yaml =
      reader.query("SELECT yaml_text FROM studies WHERE study_id=?1", {study.study_id});
  write_file_atomically(arguments.out / (study.name + ".yaml"), *text(yaml.at(0, "yaml_text")));
  copy.checkpoint();
  if (context.json) {
    *context.out << nlohmann::json{{"schema_version", 1},
                                   {"folder", arguments.out.string()},
                                   {"runs", merged.runs},
                                   {"steps", merged.steps},
                                   {"comparisons", merged.comparisons},
                                   {"pairs", merged.pairs},
                                   {"files", copied.files},
                                   {"missing_files", copied.missing}}
                        .dump()
                 << "\n";
    return;
  }
  *context.out << study.name << ": " << merged.cells << " cells, " << merged.runs << " ended runs, "
               << merged.steps << " steps, "
               << (merged.comparisons > 0 ? std::to_string(merged.comparisons) + " comparisons, " +
                                                std::to_string(merged.pairs) + " pairs, "
                                          : "")
               << copied.files << " files to '" << arguments.out.string() << "'\n";
  if (copied.missing > 0) {
    *context.err << copied.missing << " logs or spools are no longer on disk and are not in it\n";
  }
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = app.add_subcommand("export", "Copy a study with its logs into one folder");
  add_study_argument(*command, arguments->study);
  command->add_option("--out", arguments->out, "Folder, made if missing")
      ->required()
      ->type_name("DIR");
  command->footer(R"(
The folder holds assay.db (this study alone), the study's YAML, and logs and spools below runs/.

Examples:
  assay export quickstart --out /tmp/quickstart
  assay compare --db /tmp/quickstart/assay.db)");
  command->callback([arguments, &context] { export_study(*arguments, context); });
}

}  // namespace assay::cli
