// assay explain A B: where the difference of two step times lies.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "assay/error.h"
#include "core/base/nearest.h"
#include "core/base/units.h"
#include "core/cli/commands.h"
#include "core/cli/view.h"
#include "core/evidence/assess.h"
#include "core/evidence/explain.h"
#include "core/report/chrome_trace.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using evidence::Breakdown;
using evidence::kParts;
using evidence::Part;
using evidence::RunRecord;
using nlohmann::json;

constexpr double kMilli = 1e3;
constexpr size_t kOperators = 12;  ///< lines of the operators' table

struct ExplainArguments {
  std::string a{}, b{}, study{};
  fs::path traces{};
};

/// A side as it was asked for.
struct Side {
  std::string label{};
  std::vector<RunRecord> runs{};
  Breakdown breakdown{};
};

std::vector<RunRecord> records(const store::Reader& reader, const std::vector<int64_t>& ids) {
  std::vector<RunRecord> list;
  for (auto& [id, run] : evidence::load_runs(reader, ids)) list.push_back(run);
  return list;
}

/// Runs of a recipe of the study, all seeds, that ended well.
std::vector<RunRecord> recipe_runs(const store::Reader& reader, const std::string& study,
                                   const std::string& label) {
  std::vector<std::string> labels;
  for (const evidence::Arm& arm :
       evidence::load_arms(reader, chosen_study(reader, study).study_id)) {
    labels.push_back(arm.label);
    if (arm.label != label) continue;
    std::vector<int64_t> ids;
    for (const auto& seed : arm.seeds) {
      const auto more = evidence::ok_runs(reader, seed.cell_id);
      ids.insert(ids.end(), more.begin(), more.end());
    }
    return records(reader, ids);
  }
  const std::string near = did_you_mean(nearest(label, labels));
  throw Error("'" + label + "' is no number of a run and no recipe of the study",
              near.empty() ? "assay compare lists the recipes" : near);
}

Side side_of(const store::Reader& reader, const std::string& study, const std::string& name) {
  Side side{.label = name};
  if (const auto run_id = parse_integer(name)) {
    side.runs = records(reader, {*run_id});
    side.label = "run " + name;
    if (side.runs.empty()) throw Error("there is no run " + name, "assay status lists them");
  } else {
    side.runs = recipe_runs(reader, study, name);
  }
  try {
    side.breakdown = evidence::break_down(reader, side.runs);
  } catch (const Error& e) {
    throw InfrastructureError(side.label + ": " + e.what(), e.hint());
  }
  return side;
}

std::string cell_text(const std::map<Part, double>& parts, Part part) {
  const auto found = parts.find(part);
  return found == parts.end() ? "-" : fmt::format("{:.3f}", kMilli * found->second);
}

std::string row(const std::string& name, const std::string& a, const std::string& b,
                const std::string& difference, const std::string& share) {
  return fmt::format("  {:<16}{:>12}{:>12}{:>12}{:>10}\n", name, a, b, difference, share);
}

std::string parts_text(const Breakdown& a, const Breakdown& b) {
  const double whole = b.wall_s - a.wall_s;
  std::string out = row("ms per step", "A", "B", "B - A", "of it");
  for (const Part part : kParts) {
    const bool both = a.parts.contains(part) && b.parts.contains(part);
    const double d = both ? b.parts.at(part) - a.parts.at(part) : 0;
    out += row(name_of(part), cell_text(a.parts, part), cell_text(b.parts, part),
               both ? fmt::format("{:+.3f}", kMilli * d) : "-",
               both && whole != 0 ? fmt::format("{:+.0f} %", 100 * d / whole) : "-");
  }
  out += row("step", fmt::format("{:.3f}", kMilli * a.wall_s),
             fmt::format("{:.3f}", kMilli * b.wall_s), fmt::format("{:+.3f}", kMilli * whole),
             fmt::format("{:+.1f} %", 100 * whole / a.wall_s));
  out += row("sum of parts", fmt::format("{:.3f}", kMilli * a.parts_s()),
             fmt::format("{:.3f}", kMilli * b.parts_s()),
             fmt::format("{:+.3f}", kMilli * (b.parts_s() - a.parts_s())), "");
  return out + "  parts of one step add up to it exactly; medians over steps nearly do\n";
}

std::string traffic_text(const char* name, const Breakdown& side) {
  std::string out;
  for (const evidence::GroupTraffic& t : side.traffic) {
    out += fmt::format("  {} {:<14}{:<18}{:<10}{:>8.1f}{:>14.0f}{:>12}\n", name, t.group, t.op,
                       t.phase, t.calls, t.payload_bytes,
                       t.exposed_s ? fmt::format("{:.3f}", kMilli * *t.exposed_s) : "-");
  }
  return out;
}

/// The operators whose times differ most; calls as A and B made them.
std::string operators_text(const Breakdown& a, const Breakdown& b) {
  if (a.operators.empty() || b.operators.empty()) {
    return "operators: not recorded (runs with train.warmup_steps of 2 or more record them)\n";
  }
  struct Line {
    std::string name{};
    evidence::OperatorTime a{}, b{};
    double gap() const { return std::abs(b.self_s - a.self_s); }
  };
  std::map<std::string, Line> lines;
  for (const auto& [name, time] : a.operators) lines[name].a = time;
  for (const auto& [name, time] : b.operators) lines[name].b = time;
  std::vector<Line> sorted;
  for (auto& [name, line] : lines) {
    line.name = name;
    sorted.push_back(line);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Line& x, const Line& y) { return x.gap() > y.gap(); });
  std::string out =
      "operators in one profiled warm-up step, own time; the ones that differ most\n" +
      fmt::format("  {:<54}{:>8}{:>8}{:>10}{:>10}{:>10}\n", "ms", "calls A", "calls B", "A", "B",
                  "B - A");
  for (size_t i = 0; i < std::min(sorted.size(), kOperators); ++i) {
    const Line& line = sorted[i];
    out += fmt::format("  {:<54}{:>8.0f}{:>8.0f}{:>10.3f}{:>10.3f}{:>+10.3f}\n", line.name,
                       line.a.calls, line.b.calls, kMilli * line.a.self_s, kMilli * line.b.self_s,
                       kMilli * (line.b.self_s - line.a.self_s));
  }
  return out;
}

std::string head_text(const char* name, const Side& side) {
  return fmt::format("{}  {}   n = {} steps of {} run{}\n", name, side.label, side.breakdown.steps,
                     side.breakdown.runs.size(), side.breakdown.runs.size() == 1 ? "" : "s");
}

std::string as_text(const Side& a, const Side& b, const std::string& warning) {
  std::string out = head_text("A", a) + head_text("B", b) + warning;
  out += "medians over used steps, each as its slowest rank saw it\n" +
         parts_text(a.breakdown, b.breakdown);
  const std::string traffic = traffic_text("A", a.breakdown) + traffic_text("B", b.breakdown);
  if (!traffic.empty()) {
    out += fmt::format("per step, the busiest rank\n    {:<14}{:<18}{:<10}{:>8}{:>14}{:>12}\n",
                       "group", "operation", "phase", "calls", "payload B", "exposed ms");
    out += traffic;
  }
  out += operators_text(a.breakdown, b.breakdown);
  return out + "exposed communication of a single step is split by the run's totals\n";
}

json side_json(const Side& side) {
  json parts = json::object(), traffic = json::array(), operators = json::object();
  for (const auto& [name, time] : side.breakdown.operators) {
    operators[name] = {{"calls", time.calls}, {"self_s", time.self_s}};
  }
  for (const Part part : kParts) {
    const auto found = side.breakdown.parts.find(part);
    parts[name_of(part)] = found == side.breakdown.parts.end() ? json() : json(found->second);
  }
  for (const evidence::GroupTraffic& t : side.breakdown.traffic) {
    traffic.push_back({{"group", t.group},
                       {"op", t.op},
                       {"phase", t.phase},
                       {"calls_per_step", t.calls},
                       {"payload_bytes_per_step", t.payload_bytes},
                       {"exposed_s_per_step", t.exposed_s ? json(*t.exposed_s) : json()}});
  }
  return {{"label", side.label},
          {"runs", side.breakdown.runs},
          {"steps", side.breakdown.steps},
          {"step_s", side.breakdown.wall_s},
          {"parts_s", parts},
          {"sum_of_parts_s", side.breakdown.parts_s()},
          {"traffic", traffic},
          {"operators", operators}};
}

/// Timings of two machines say nothing about the recipes.
std::string machine_warning(const Side& a, const Side& b) {
  if (a.runs.front().machine_id == b.runs.front().machine_id) return "";
  return "warning: A and B ran on different machines\n";
}

/// One file per rank of the first run of a side.
void write_traces(const store::Reader& reader, const Side& side, const fs::path& folder,
                  const Context& context) {
  fs::create_directories(folder);
  const int64_t first = side.breakdown.runs.front();
  const RunRecord& run = *std::ranges::find(side.runs, first, &RunRecord::run_id);
  for (const int64_t rank : report::traced_ranks(reader, run.attempt_id)) {
    const fs::path file = folder / fmt::format("run{}-rank{}.trace.json", run.run_id, rank);
    std::ofstream out(file, std::ios::binary);
    out << report::chrome_trace(reader, run.attempt_id, rank).dump() << "\n";
    if (!out.flush()) throw InfrastructureError("cannot write '" + file.string() + "'");
    *context.err << "trace: " << file.string() << "\n";
  }
}

void explain(const ExplainArguments& arguments, Context& context) {
  const store::Reader reader(context.database);
  const Side a = side_of(reader, arguments.study, arguments.a);
  const Side b = side_of(reader, arguments.study, arguments.b);
  if (context.json) {
    *context.out << json{{"schema_version", 1},
                         {"a", side_json(a)},
                         {"b", side_json(b)},
                         {"same_machine", machine_warning(a, b).empty()}}
                        .dump(2)
                 << "\n";
  } else {
    *context.out << as_text(a, b, machine_warning(a, b));
  }
  if (arguments.traces.empty()) return;
  write_traces(reader, a, arguments.traces, context);
  write_traces(reader, b, arguments.traces, context);
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command = app.add_subcommand(
      "explain", "Where two step times differ: compute, communication, data, optimizer");
  command->add_option("a", arguments->a, "Number of a run, or a recipe of the study")
      ->required()
      ->type_name("A");
  command->add_option("b", arguments->b, "The other")->required()->type_name("B");
  command->add_option("--study", arguments->study, "Study of the recipes (default: the newest)")
      ->type_name("NAME");
  command
      ->add_option("--trace", arguments->traces, "Write a Chrome trace per rank (ui.perfetto.dev)")
      ->type_name("DIR");
  command->footer(R"(
Medians over used steps (assay sql: v_step.used), of all runs of a recipe that ended well.
Exit code: 0, 2 usage, 4 nothing measured.

Examples:
  assay explain 3 7
  assay explain adamw_eager_none adamw_fused_none --study quickstart
  assay explain 3 7 --trace traces)");
  command->callback([arguments, &context] { explain(*arguments, context); });
}

}  // namespace assay::cli
