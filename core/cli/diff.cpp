// assay diff A B: the first step, block, operation and rank where two traced runs part.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "assay/error.h"
#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/evidence/divergence.h"
#include "core/store/reader.h"

namespace assay::cli {
namespace {

using evidence::TraceComparison;
using evidence::TraceDigest;
using nlohmann::json;
using store::integer;
using store::real;
using store::text;

constexpr int kParted = 1, kNothingCompared = 4;
constexpr std::string_view kPrefix = "trace.", kSum = ".sum", kSquares = ".squares";

struct DiffArguments {
  int64_t a = 0, b = 0;
  std::optional<double> tolerance;
};

struct TracedRun {
  int64_t run_id = 0;
  std::string slug{};
  json mesh{};
  std::vector<TraceDigest> digests{};
};

TracedRun read_run(const store::Reader& reader, int64_t run_id) {
  const store::Table row = reader.query(
      "SELECT c.config_json, (SELECT max(attempt_id) FROM attempts a WHERE a.run_id = r.run_id) "
      "attempt,"
      " (SELECT slug FROM study_cells s WHERE s.cell_id = r.cell_id ORDER BY study_id DESC LIMIT 1)"
      " slug FROM runs r JOIN cells c USING(cell_id) WHERE r.run_id = ?1",
      {run_id});
  if (row.empty()) {
    throw Error(
        "there is no run " + std::to_string(run_id) + " in '" + reader.file().string() + "'",
        "assay status lists them");
  }
  TracedRun run{.run_id = run_id, .slug = text(row.at(0, "slug")).value_or("?")};
  run.mesh = json::parse(*text(row.at(0, "config_json"))).value("mesh", json::object());
  const auto attempt = integer(row.at(0, "attempt"));
  if (!attempt) throw Error("run " + std::to_string(run_id) + " has not started");
  const store::Table rows = reader.query(
      "SELECT s.step, s.name, s.rank, s.value sum, q.value squares FROM samples s JOIN samples q"
      " ON q.attempt_id = s.attempt_id AND q.rank = s.rank AND q.step = s.step"
      " AND q.name = substr(s.name, 1, length(s.name) - 4) || '.squares'"
      " WHERE s.attempt_id = ?1 AND s.name LIKE 'trace.%.sum'",
      {*attempt});
  if (rows.empty()) {
    throw Error("run " + std::to_string(run_id) + " (" + run.slug + ") has no trace",
                "run its study with --set train.trace=blocks (or ops)");
  }
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const std::string name = *text(rows.at(i, "name"));
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    run.digests.push_back(
        {.step = *integer(rows.at(i, "step")),
         .point = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSum.size()),
         .rank = *integer(rows.at(i, "rank")),
         .sum = real(rows.at(i, "sum")).value_or(nothing),
         .squares = real(rows.at(i, "squares")).value_or(nothing)});
  }
  return run;
}

json as_json(const TraceComparison& result, double tolerance) {
  json out{{"schema_version", 1},
           {"tolerance", tolerance},
           {"points_compared", result.compared},
           {"largest_gap_before", result.largest_gap},
           {"one_sided_points", result.one_sided},
           {"first", nullptr}};
  if (!result.first) return out;
  const evidence::Divergence& d = *result.first;
  out["first"] = {{"step", d.step},
                  {"point", d.point},
                  {"rank", d.rank < 0 ? json(nullptr) : json(d.rank)},
                  {"gap", d.gap},
                  {"sum", {d.a.sum, d.b.sum}},
                  {"squares", {d.a.squares, d.b.squares}}};
  return out;
}

std::string as_text(const TraceComparison& result, const TracedRun& a, const TracedRun& b,
                    double tolerance) {
  std::string out = fmt::format("run {} {}\nrun {} {}\n", a.run_id, a.slug, b.run_id, b.slug);
  if (result.first) {
    const evidence::Divergence& d = *result.first;
    out += fmt::format("they part at step {}: {}{}\n", d.step, d.point,
                       d.rank < 0 ? " (all ranks)" : " on rank " + std::to_string(d.rank));
    out += fmt::format(
        "  sum      {:.17g}   {:.17g}\n  squares  {:.17g}   {:.17g}\n  gap      {:.3g}\n", d.a.sum,
        d.b.sum, d.a.squares, d.b.squares, d.gap);
  } else {
    out += "no difference\n";
  }
  out += fmt::format("{} points{} agree within {:g} (largest gap {:.3g})\n",
                     result.compared - (result.first ? 1 : 0), result.first ? " before it" : "",
                     tolerance, result.largest_gap);
  if (!result.one_sided.empty()) {
    out += fmt::format("{} points are in one run only, the first: {}\n", result.one_sided.size(),
                       result.one_sided.front());
  }
  return out;
}

// Equal layouts can be equal in bits; others add in another order.
constexpr double kSameLayout = 0, kOtherLayout = 1e-5;

void diff(const DiffArguments& arguments, Context& context) {
  const store::Reader reader(context.database);
  const TracedRun a = read_run(reader, arguments.a), b = read_run(reader, arguments.b);
  const bool same = a.mesh == b.mesh;
  const double tolerance = arguments.tolerance.value_or(same ? kSameLayout : kOtherLayout);
  const TraceComparison result = evidence::compare_traces(a.digests, b.digests, same, tolerance);
  if (context.json) {
    *context.out << as_json(result, tolerance).dump(2) << "\n";
  } else {
    *context.out << as_text(result, a, b, tolerance);
  }
  context.exit_code = result.first ? kParted : result.compared == 0 ? kNothingCompared : 0;
}

}  // namespace

void add_diff(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<DiffArguments>();
  CLI::App* command =
      app.add_subcommand("diff", "The first place where two traced runs part, across layouts too");
  command->add_option("a", arguments->a, "Number of a run (assay status)")
      ->required()
      ->type_name("RUN");
  command->add_option("b", arguments->b, "Number of the other")->required()->type_name("RUN");
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "Relative gap that is no difference (0 for equal layouts, else 1e-5)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("GAP");
  command->footer(R"(
Both runs need digests: run their study with --set train.trace=blocks (or ops).
Exit code: 0 no difference, 1 they part, 2 usage, 4 nothing to compare.

Examples:
  assay run experiments/parity.yaml --set train.trace=blocks
  assay diff 3 7
  assay diff 3 7 --tolerance 1e-9 --json)");
  command->callback([arguments, &context] { diff(*arguments, context); });
}

}  // namespace assay::cli
