// assay report STUDY: the comparison as files.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/cli/commands.h"
#include "core/cli/view.h"
#include "core/report/formats.h"

namespace assay::cli {
namespace {

struct ReportArguments {
  report::ModelRequest request{};
  std::vector<std::string> formats = {"md", "csv", "json"};
  std::filesystem::path out{};
};

std::string content(const report::Model& model, const std::string& format) {
  if (format == "md") return report::markdown(model);
  if (format == "csv") return report::csv(model);
  return report::json(model).dump(1) + "\n";
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error("cannot create the folder '" + folder.string() + "': " + error.message(),
                "choose another one with --out DIR");
  }
}

void write_report(const ReportArguments& arguments, const Context& context) {
  const store::Reader reader(context.database);
  report::ModelRequest request = arguments.request;
  request.samples = true;
  const report::Model model = report::build_model(reader, request);
  const auto folder = arguments.out.empty()
                          ? context.database.parent_path() / "reports" / model.study
                          : arguments.out;
  make_folder(folder);
  nlohmann::json files = nlohmann::json::array();
  for (const std::string& format : arguments.formats) {
    const auto file = folder / (model.study + "." + format);
    write_file_atomically(file, content(model, format));
    files.push_back(file.string());
    if (!context.json) *context.out << file.string() << "\n";
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
  command->add_option("--format", arguments->formats, "md, csv, json (comma list; default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"md", "csv", "json"}))
      ->type_name("LIST");
  command
      ->add_option("--out", arguments->out, "Folder (default: reports/STUDY beside the database)")
      ->type_name("DIR");
  command->add_option("--baseline", arguments->request.baseline, "Recipe shown first")
      ->type_name("RECIPE");
  command->add_option("--metric", arguments->request.metrics, "One more column (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  command->footer(R"(
Examples:
  assay report quickstart
  assay report matrix --format md --out /tmp/matrix)");
  command->callback([arguments, &context] { write_report(*arguments, context); });
}

}  // namespace assay::cli
