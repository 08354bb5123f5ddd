// assay gate: did a change make recipes slower, larger or other? Exit codes that CI can hang on.
#include "core/cli/gate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <ostream>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/cli/commands.h"
#include "core/evidence/gate_values.h"
#include "core/store/comparisons.h"
#include "core/store/store.h"

namespace assay::cli {
namespace {

using evidence::Accepted;
using evidence::GateFinding;
using evidence::GateOutcome;
using nlohmann::json;

constexpr int64_t kMicro = 1'000'000;

std::string today() {
  const std::time_t seconds = now_us() / kMicro;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

void check_arguments(const GateArguments& a) {
  const bool databases = !a.baseline_db.empty() || !a.candidate_db.empty();
  if (databases && (a.baseline_db.empty() || a.candidate_db.empty())) {
    throw Error("the gate needs both --baseline-db and --candidate-db");
  }
  const bool plugins = !a.baseline_plugins.empty() || !a.candidate_plugins.empty();
  const bool both = !a.baseline_plugins.empty() && !a.candidate_plugins.empty();
  if (databases ? !a.file.empty() || plugins : a.file.empty() || (plugins && !both)) {
    throw Error(
        "the gate compares two builds: a study with --baseline-plugins and --candidate-plugins, or"
        " --baseline-db and --candidate-db alone; a study alone is held to accepted values",
        "assay gate --help");
  }
}

void gate(const GateArguments& arguments, Context& context) {
  check_arguments(arguments);
  const GateReport report = arguments.baseline_db.empty() ? gate_plugins(arguments, context)
                                                          : gate_databases(arguments, context);
  print_gate(report, context);
  const GateOutcome outcome = evidence::worst(report.findings);
  context.exit_code = static_cast<int>(outcome);
  if (arguments.strict && outcome == GateOutcome::unresolved) context.exit_code = 1;
}

struct AcceptArguments {
  std::filesystem::path file{};
  std::string metric{}, reason{}, cell{}, commit{}, author{};
  std::string anchor = "rolling";
};

/// The candidate's cells of the gate's study, newest plan.
std::vector<evidence::ConfiguredCell> candidate_cells(const store::Reader& reader,
                                                      const std::string& study) {
  std::vector<evidence::ConfiguredCell> cells =
      evidence::configured_cells(reader, reader.study(study + "-gate").study_id);
  const bool two_builds = std::any_of(cells.begin(), cells.end(),
                                      [](const auto& c) { return c.slug.starts_with("cand."); });
  std::erase_if(cells,
                [&](const auto& c) { return c.slug.starts_with(two_builds ? "base." : "cand."); });
  return cells;
}

std::string study_name(const std::filesystem::path& file) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("study:", 0) != 0) continue;
    std::string name = line.substr(6);
    name.erase(0, name.find_first_not_of(" \t'\""));
    return name.substr(0, name.find_first_of(" \t'\"#\r"));
  }
  throw Error("'" + file.string() + "' has no line 'study: NAME'",
              "give the study file of the gate");
}

std::optional<double> value_of(const evidence::BuildValues& build, const std::string& metric) {
  for (const auto& [name, value] : build.values) {
    if (name == metric) return value;
  }
  return std::nullopt;
}

void write_records(const std::filesystem::path& file, const std::vector<Accepted>& records) {
  json list = json::array();
  for (const Accepted& a : records) list.push_back(to_json(a));
  write_file_atomically(file, json{{"schema_version", 1}, {"accepted", list}}.dump(2) + "\n");
}

void accept(AcceptArguments arguments, const Context& context) {
  if (arguments.reason.empty()) throw Error("an acceptance needs a --reason");
  const auto known = evidence::gate_metrics();
  if (std::find(known.begin(), known.end(), arguments.metric) == known.end()) {
    throw Error("the gate knows no metric '" + arguments.metric + "'",
                fmt::format("known: {}", fmt::join(known, ", ")));
  }
  if (arguments.commit.empty())
    arguments.commit = from_environment({"GITHUB_SHA", "CI_COMMIT_SHA"});
  if (arguments.author.empty()) arguments.author = from_environment({"GITHUB_ACTOR", "USER"});
  if (arguments.commit.empty() || arguments.author.empty()) {
    throw Error("an acceptance names who accepts which commit",
                "give --commit \"$(git rev-parse HEAD)\" and --author NAME");
  }
  store::Store store(context.database);
  const store::Reader reader(context.database);
  const auto file = acceptance_file(arguments.file);
  std::vector<Accepted> records = read_acceptances(file);
  size_t made = 0;
  for (const auto& cell : candidate_cells(reader, study_name(arguments.file))) {
    const std::string label = cell.slug.substr(cell.slug.find('.') + 1);
    if (!arguments.cell.empty() && label != arguments.cell) continue;
    const evidence::BuildValues build = evidence::build_values(reader, cell.cell_id);
    const bool time = arguments.metric == "step_time";
    const auto value = time ? std::optional(1.0) : value_of(build, arguments.metric);
    if (!value) continue;
    std::optional<double> old;
    for (const auto& anchor : evidence::load_anchors(reader, "gate", build.machine_id,
                                                     cell.config_id, arguments.anchor)) {
      if (anchor.metric == arguments.metric) old = anchor.value;
    }
    records.push_back({.config_id = cell.config_id,
                       .metric = arguments.metric,
                       .old_value = old,
                       .new_value = *value,
                       .cell_id = cell.cell_id,
                       .commit = arguments.commit,
                       .author = arguments.author,
                       .reason = arguments.reason,
                       .made = today()});
    const store::Baseline baseline{.machine_id = build.machine_id,
                                   .gate = "gate",
                                   .config_id = cell.config_id,
                                   .metric = arguments.metric,
                                   .anchor = arguments.anchor,
                                   .value = *value};
    store::accept(store,
                  {.machine_id = build.machine_id,
                   .gate = "gate",
                   .config_id = cell.config_id,
                   .metric = arguments.metric,
                   .old_value = old,
                   .new_value = *value,
                   .commit_sha = arguments.commit,
                   .author = arguments.author,
                   .reason = arguments.reason},
                  baseline);
    ++made;
  }
  if (made == 0) {
    throw Error("nothing to accept: no cell of the gate has '" + arguments.metric + "'",
                "run the gate first: assay gate " + arguments.file.string());
  }
  write_records(file, records);
  *context.out << fmt::format("accepted {} of {} cell{}; commit {}\n", arguments.metric, made,
                              made == 1 ? "" : "s", file.string());
}

std::string finding_line(const GateFinding& f) {
  std::string line =
      fmt::format("{:<12} {}: {}: {}", evidence::name_of(f.outcome), f.cell, f.metric, f.text);
  if (!f.accepted.empty()) line += " [accepted: " + f.accepted + "]";
  return line;
}

json report_json(const GateReport& report) {
  json findings = json::array();
  for (const GateFinding& f : report.findings) {
    const auto number = [](const std::optional<double>& x) { return x ? json(*x) : json(nullptr); };
    findings.push_back({{"cell", f.cell},
                        {"config_id", f.config_id},
                        {"metric", f.metric},
                        {"outcome", evidence::name_of(f.outcome)},
                        {"text", f.text},
                        {"baseline", number(f.base)},
                        {"candidate", number(f.candidate)},
                        {"accepted", f.accepted}});
  }
  const GateOutcome outcome = evidence::worst(report.findings);
  return {{"schema_version", 1},
          {"study", report.study},
          {"outcome", evidence::name_of(outcome)},
          {"exit_code", static_cast<int>(outcome)},
          {"time_gated", report.timed},
          {"findings", findings}};
}

void add_accept(CLI::App& gate_command, Context& context) {
  auto arguments = std::make_shared<AcceptArguments>();
  CLI::App* command = gate_command.add_subcommand(
      "accept", "Accept the candidate's value: a record with its reason, to be committed");
  command->add_option("file", arguments->file, "Study (YAML) of the gate")->required();
  command->add_option("--metric", arguments->metric, "Which figure")->required()->type_name("NAME");
  command->add_option("--reason", arguments->reason, "Why it may be so")
      ->required()
      ->type_name("TEXT");
  command->add_option("--cell", arguments->cell, "One cell only (default: all)")->type_name("SLUG");
  command->add_option("--anchor", arguments->anchor, "rolling or release")
      ->check(CLI::IsMember({"rolling", "release"}).description(""))
      ->type_name("ANCHOR");
  command->add_option("--commit", arguments->commit, "Accepted commit (default: the CI's variable)")
      ->type_name("SHA");
  command->add_option("--author", arguments->author, "Who accepts (default: the CI's variable)")
      ->type_name("NAME");
  command->callback([arguments, &context] { accept(*arguments, context); });
}

}  // namespace

std::filesystem::path acceptance_file(const std::filesystem::path& study_file) {
  std::filesystem::path file = study_file;
  return file.replace_extension(".accepted.json");
}

std::vector<Accepted> read_acceptances(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  const json document = json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || document.value("schema_version", 0) != 1) {
    throw Error("'" + file.string() + "' is no file of acceptances",
                "it is written by: assay gate accept");
  }
  std::vector<Accepted> records;
  for (const json& record : document.value("accepted", json::array())) {
    records.push_back(evidence::accepted_from_json(record));
  }
  return records;
}

void print_gate(const GateReport& report, const Context& context) {
  if (context.json) {
    *context.out << report_json(report).dump(2) << "\n";
    return;
  }
  const GateOutcome outcome = evidence::worst(report.findings);
  for (const GateFinding& f : report.findings) {
    if (context.verbosity < 0 && f.outcome == GateOutcome::pass) continue;
    *context.out << finding_line(f) << "\n";
  }
  if (!report.timed) *context.out << "step_time    not gated\n";
  *context.out << fmt::format("gate {}: {} (exit {})\n", report.study, evidence::name_of(outcome),
                              static_cast<int>(outcome));
}

void add_gate(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<GateArguments>();
  CLI::App* command =
      app.add_subcommand("gate", "Compare two builds of the plugins; exit codes for CI");
  command->require_subcommand(0, 1);
  command->add_option("file", arguments->file, "Study (YAML); its gate: section says what counts");
  command
      ->add_option("--baseline-plugins", arguments->baseline_plugins,
                   "Folder with the plugins of the merge base")
      ->type_name("DIR");
  command
      ->add_option("--candidate-plugins", arguments->candidate_plugins,
                   "Folder with the plugins of the change")
      ->type_name("DIR");
  command->add_option("--baseline-db", arguments->baseline_db, "Instead: results of the merge base")
      ->type_name("FILE");
  command->add_option("--candidate-db", arguments->candidate_db, "Instead: results of the change")
      ->type_name("FILE");
  command->add_option("--study", arguments->study, "Of two databases: its name")->type_name("NAME");
  command->add_option("--budget", arguments->budget, "No pair starts that would end later: 15m")
      ->type_name("TIME");
  command->add_option("--anchor", arguments->anchor, "Accepted values to hold (default: both)")
      ->check(CLI::IsMember({"rolling", "release"}).description(""))
      ->type_name("ANCHOR");
  command->add_option("--accepted", arguments->accepted, "One more file of acceptance records")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command->add_flag("--strict", arguments->strict, "Unresolved fails as well");
  command->footer(R"(
Exit code: 0 pass, 1 regression, 2 usage or not comparable, 3 unresolved, 4 infrastructure or nothing
measured. Nothing measured never passes.

Examples:
  assay gate ci.yaml --baseline-plugins base/plugins --candidate-plugins head/plugins --budget 15m
  assay gate --baseline-db base.db --candidate-db head.db
  assay gate ci.yaml      one build, held to the values in ci.accepted.json
  assay gate accept ci.yaml --metric peak_allocated_bytes --reason "keeps a second copy of the logits")");
  add_accept(*command, context);
  command->callback([arguments, command, &context] {
    if (command->get_subcommands().empty()) gate(*arguments, context);
  });
}

}  // namespace assay::cli
