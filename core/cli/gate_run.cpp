// Both ways to a gate report.
#include <algorithm>
#include <chrono>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/base/units.h"
#include "core/cli/comparing.h"
#include "core/cli/gate.h"
#include "core/cli/tuning.h"
#include "core/evidence/gate_values.h"
#include "core/host/machine.h"
#include "core/host/study.h"

namespace assay::cli {
namespace {

using evidence::GateCell;
using nlohmann::json;
using std::chrono::steady_clock;

constexpr const char* kGate = "gate";
constexpr double kStage1Share = 0.5;

/// A study planned with the plugins of one folder alone (and those that the study names), or with
/// the installed ones.
grid::Plan plan_with(const std::filesystem::path& file, const std::filesystem::path& plugins,
                     const Context& context) {
  grid::PlanRequest request = plan_request(context, file);
  std::unique_ptr<grid::Components> kept;
  if (!plugins.empty()) {
    if (!std::filesystem::is_directory(plugins)) {
      throw Error("there is no folder of plugins '" + plugins.string() + "'",
                  "build it: cmake --build BUILD, then BUILD/lib/assay/plugins");
    }
    request.components =
        [&](std::vector<std::filesystem::path> folders) -> const grid::Components& {
      folders.insert(folders.begin(), plugins);
      kept = context.exact_components(folders);
      return *kept;
    };
  }
  grid::Plan plan = grid::plan(request);
  require_untuned(plan, "the gate");
  return plan;
}

/// Cells of both builds under one study; equal cells (the same binaries) stand once.
int64_t store_both(store::Store& store, const grid::Plan& base, const grid::Plan& candidate) {
  grid::Plan both = candidate;
  both.study += "-gate";
  both.cells.clear();
  std::vector<std::string> known;
  for (const auto& [plan, mark] : {std::pair(&base, "base"), std::pair(&candidate, "cand")}) {
    for (grid::Cell cell : plan->cells) {
      if (std::find(known.begin(), known.end(), cell.cell_id) != known.end()) continue;
      known.push_back(cell.cell_id);
      cell.slug = std::string(mark) + "." + cell.slug;
      cell.ordinal = static_cast<int>(both.cells.size());
      both.cells.push_back(std::move(cell));
    }
  }
  return host::store_plan(store, both);
}

evidence::Arm arm_of(const grid::Cell& cell, const std::string& label) {
  const auto seed = cell.config().value("seed", int64_t{0});
  return {.label = label,
          .recipe_id = cell.recipe_id,
          .config_json = cell.config_json,
          .seeds = {{.seed = seed, .cell_id = cell.cell_id}}};
}

/// Baseline against candidate build of every configuration that both can run.
std::vector<host::ComparisonPlan> builds_compared(const grid::Plan& base,
                                                  const grid::Plan& candidate,
                                                  const evidence::Design& design) {
  std::vector<host::ComparisonPlan> plans;
  for (const grid::Cell& cell : candidate.cells) {
    const auto found =
        std::find_if(base.cells.begin(), base.cells.end(),
                     [&](const grid::Cell& other) { return other.config_id == cell.config_id; });
    if (found == base.cells.end()) continue;
    evidence::Design own = design;
    own.baseline = "baseline build";
    own.candidate = cell.slug;
    plans.push_back({.base = arm_of(*found, "baseline"),
                     .candidate = arm_of(cell, cell.slug),
                     .design = std::move(own)});
  }
  return plans;
}

GateCell gate_cell(const store::Reader& reader, const std::string& label,
                   const std::string& config_id, const std::string& base_cell,
                   const store::Reader& cand_reader, const std::string& cand_cell,
                   const std::string& anchor) {
  GateCell cell{.label = label, .config_id = config_id, .cand_cell = cand_cell};
  const evidence::BuildValues base = evidence::build_values(reader, base_cell);
  const evidence::BuildValues candidate = evidence::build_values(cand_reader, cand_cell);
  cell.base_state = base.state;
  cell.cand_state = candidate.state;
  cell.base = base.values;
  cell.candidate = candidate.values;
  cell.anchors =
      evidence::load_anchors(cand_reader, kGate, candidate.machine_id, config_id, anchor);
  return cell;
}

class PluginGate {
 public:
  PluginGate(const GateArguments& arguments, Context& context)
      : arguments_(arguments),
        context_(context),
        two_builds_(!arguments.baseline_plugins.empty()),
        candidate_(plan_with(arguments.file, arguments.candidate_plugins, context)),
        base_(two_builds_ ? plan_with(arguments.file, arguments.baseline_plugins, context)
                          : candidate_),
        rule_(evidence::gate_rule(candidate_.gate)),
        store_(context.database),
        study_id_(store_both(store_, base_, candidate_)),
        plans_(builds_compared(base_, candidate_, rule_.design())) {
    *context.err << render(candidate_.diagnostics);
    if (plans_.empty()) {
      throw Error("no configuration can be run by both builds",
                  "assay plan " + arguments.file.string() + " tells what each refuses");
    }
  }

  GateReport run() {
    set_budget();
    if (times()) schedule(store_, study_id_, plans_);
    supervise_until(kStage1Share);
    std::vector<GateCell> cells = judged();
    const bool time = times();
    if (time && rule_.two_stage && evidence::fires(cells)) {
      std::vector<host::ComparisonPlan> fired;
      for (size_t i = 0; i < plans_.size(); ++i) {
        if (evidence::fires({cells[i]})) fired.push_back(plans_[i]);
      }
      schedule(store_, study_id_, fired, 2);
      supervise_until(1);
      cells = judged();
    }
    GateReport report{.study = candidate_.study, .cells = std::move(cells), .timed = time};
    std::vector<evidence::Accepted> accepted = read_acceptances(acceptance_file(arguments_.file));
    for (const auto& file : arguments_.accepted) {
      for (auto& record : read_acceptances(file)) accepted.push_back(std::move(record));
    }
    report.findings = evidence::judge_gate(rule_, report.cells, accepted, time);
    return report;
  }

 private:
  bool times() const { return two_builds_ && rule_.gates("step_time"); }

  void set_budget() {
    if (arguments_.budget.empty()) return;
    const auto budget = parse_duration(arguments_.budget);
    if (!budget || *budget <= 0) {
      throw Error("--budget '" + arguments_.budget + "' is no duration", "it reads like 15m or 1h");
    }
    started_ = steady_clock::now();
    budget_ = std::chrono::nanoseconds(*budget);
  }

  void supervise_until(double share) {
    SuperviseFlags flags;
    flags.table = false;
    if (budget_) {
      flags.no_pair_ends_after =
          started_ + std::chrono::duration_cast<steady_clock::duration>(*budget_ * share);
    }
    supervise(store_, study_id_, candidate_.study, candidate_.run, flags, context_);
    constexpr int kStopped = 128;  // 130 Ctrl-C, 143 SIGTERM
    if (context_.exit_code > kStopped) throw InfrastructureError("the gate was stopped");
  }

  std::vector<GateCell> judged() {
    const store::Reader reader(store_.file());
    const auto comparisons = judge(reader, study_id_, plans_);
    keep(store_, comparisons);
    std::vector<GateCell> cells;
    for (size_t i = 0; i < plans_.size(); ++i) {
      const std::string& cell_id = plans_[i].candidate.seeds.front().cell_id;
      const auto cell = std::find_if(candidate_.cells.begin(), candidate_.cells.end(),
                                     [&](const grid::Cell& c) { return c.cell_id == cell_id; });
      cells.push_back(gate_cell(reader, plans_[i].design.candidate, cell->config_id,
                                plans_[i].base.seeds.front().cell_id, reader, cell_id,
                                arguments_.anchor));
      cells.back().verdicts = comparisons[i].verdicts;
      if (!two_builds_) cells.back().base.clear();
    }
    return cells;
  }

  const GateArguments& arguments_;
  Context& context_;
  const bool two_builds_;  ///< else one, held to accepted values alone
  const grid::Plan candidate_, base_;
  const evidence::GateRule rule_;
  store::Store store_;
  const int64_t study_id_;
  const std::vector<host::ComparisonPlan> plans_;
  steady_clock::time_point started_{};
  std::optional<std::chrono::nanoseconds> budget_{};
};

/// `gate:` of a stored study.
evidence::GateRule stored_rule(const std::string& resolved_json) {
  const json resolved = json::parse(resolved_json, nullptr, /*allow_exceptions=*/false);
  return evidence::gate_rule(resolved.is_object() ? resolved.value("gate", json()) : json());
}

}  // namespace

GateReport gate_plugins(const GateArguments& arguments, Context& context) {
  return PluginGate(arguments, context).run();
}

GateReport gate_databases(const GateArguments& arguments, Context&) {
  const store::Reader base(arguments.baseline_db), candidate(arguments.candidate_db);
  const auto study_of = [&](const store::Reader& reader) {
    return arguments.study.empty() ? reader.newest_study() : reader.study(arguments.study);
  };
  const store::StudyInfo base_study = study_of(base), cand_study = study_of(candidate);
  const evidence::GateRule rule = stored_rule(cand_study.resolved_json);
  GateReport report{.study = cand_study.name};
  const auto base_cells = evidence::configured_cells(base, base_study.study_id);
  for (const auto& cell : evidence::configured_cells(candidate, cand_study.study_id)) {
    const auto found = std::find_if(base_cells.begin(), base_cells.end(), [&](const auto& other) {
      return other.config_id == cell.config_id;
    });
    if (found == base_cells.end()) continue;
    report.cells.push_back(gate_cell(base, cell.slug, cell.config_id, found->cell_id, candidate,
                                     cell.cell_id, arguments.anchor));
  }
  std::vector<evidence::Accepted> accepted;
  for (const auto& file : arguments.accepted) {
    for (auto& record : read_acceptances(file)) accepted.push_back(std::move(record));
  }
  report.findings = evidence::judge_gate(rule, report.cells, accepted, /*gate_time=*/false);
  return report;
}

}  // namespace assay::cli
