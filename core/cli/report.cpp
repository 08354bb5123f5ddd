// assay report STUDY: the comparison as files.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <ostream>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/cli/commands.h"
#include "core/cli/view.h"
#include "core/report/formats.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

/// Formats that are files named STUDY.<end>, and those that are folders.
const std::vector<std::string> kFormats = {"md",    "csv",    "json",        "html",
                                           "junit", "github", "tensorboard", "mlflow"};

struct ReportArguments {
  report::ModelRequest request{};
  std::vector<std::string> formats = {"md", "csv", "json", "html"};
  fs::path out{};
};

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw Error("cannot create the folder '" + folder.string() + "': " + error.message(),
                "choose another one with --out DIR");
  }
}

void write_all(const fs::path& folder, const std::vector<report::ReportFile>& files) {
  for (const report::ReportFile& file : files) {
    const fs::path place = folder / fs::path(file.path);
    make_folder(place.parent_path());
    if (!place.has_filename()) continue;
    std::ofstream out(place, std::ios::binary);
    out << file.content;
    if (!out.flush()) {
      throw InfrastructureError("cannot write '" + place.string() + "'",
                                "check the disk, or choose another folder with --out DIR");
    }
  }
}

/// The job's summary is one file for all of its steps: this one adds to it.
fs::path append_summary(const report::Model& model) {
  const char* const file = std::getenv("GITHUB_STEP_SUMMARY");
  if (file == nullptr || *file == '\0') {
    throw Error("--format github needs the environment variable GITHUB_STEP_SUMMARY",
                "a GitHub job sets it; elsewhere use --format md");
  }
  std::ofstream out(file, std::ios::binary | std::ios::app);
  out << report::github_summary(model) << "\n";
  if (!out.flush()) {
    throw InfrastructureError("cannot append to GITHUB_STEP_SUMMARY '" + std::string(file) + "'");
  }
  return file;
}

std::string text_of(const report::Model& model, const std::string& format) {
  if (format == "md") return report::markdown(model);
  if (format == "csv") return report::csv(model);
  if (format == "html") return report::html(model);
  if (format == "junit") return report::junit(model);
  return report::json(model).dump(1) + "\n";
}

/// Writes one format; the file or folder that it is now in.
fs::path write_format(const report::Model& model, const std::string& format,
                      const fs::path& folder) {
  if (format == "github") return append_summary(model);
  if (format == "tensorboard") {
    write_all(folder / "tensorboard", report::tensorboard(model));
    return folder / "tensorboard";
  }
  if (format == "mlflow") {
    const fs::path runs = folder / "mlruns";
    write_all(runs, report::mlflow(model, fs::absolute(runs).string()));
    return runs;
  }
  const std::string end = format == "junit" ? "junit.xml" : format;
  const fs::path file = folder / (model.study + "." + end);
  write_file_atomically(file, text_of(model, format));
  return file;
}

/// What to type next for formats that another program reads.
std::string hint_for(const std::string& format, const fs::path& place) {
  if (format == "tensorboard") return "tensorboard --logdir " + place.string();
  if (format == "mlflow") {
    return "mlflow migrate-filestore --source " + place.string() + " --target sqlite:///mlflow.db";
  }
  return "";
}

void write_report(const ReportArguments& arguments, const Context& context) {
  const store::Reader reader(context.database);
  report::ModelRequest request = arguments.request;
  request.samples = true;
  request.database_flag = database_flag(context);
  const report::Model model = report::build_model(reader, request);
  const auto folder = arguments.out.empty()
                          ? context.database.parent_path() / "reports" / model.study
                          : arguments.out;
  make_folder(folder);
  nlohmann::json files = nlohmann::json::array();
  for (const std::string& format : arguments.formats) {
    const fs::path place = write_format(model, format, folder);
    files.push_back(place.string());
    if (context.json) continue;
    *context.out << place.string() << "\n";
    const std::string hint = hint_for(format, place);
    if (!hint.empty() && context.verbosity >= 0) *context.err << "read it with: " << hint << "\n";
    if (format != "github") continue;
    for (const std::string& line : report::github_annotations(model)) *context.out << line << "\n";
  }
  if (context.json) {
    *context.out << nlohmann::json{{"schema_version", 1}, {"files", files}}.dump() << "\n";
  }
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "Write the comparison of a study to files");
  add_study_argument(*command, arguments->request.study);
  command
      ->add_option("--format", arguments->formats,
                   "Comma list of md, csv, json, html, junit, github, tensorboard, mlflow"
                   " (default: md,csv,json,html)")
      ->delimiter(',')
      ->check(CLI::IsMember(kFormats).description(""))
      ->type_name("LIST");
  command
      ->add_option("--out", arguments->out, "Folder (default: reports/STUDY beside the database)")
      ->type_name("DIR");
  command->add_option("--baseline", arguments->request.baseline, "Recipe shown first")
      ->type_name("RECIPE");
  command->add_option("--metric", arguments->request.metrics, "One more column (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  command->add_flag("--all-keys", arguments->request.all_keys,
                    "All configuration keys, not only differing ones");
  command->footer(R"(
github appends to the file that GITHUB_STEP_SUMMARY names and prints annotations;
tensorboard and mlflow are folders for those programs.

Examples:
  assay report quickstart
  assay report matrix --format html --out /tmp/matrix
  assay report matrix --format junit,github)");
  command->callback([arguments, &context] { write_report(*arguments, context); });
}

}  // namespace assay::cli
