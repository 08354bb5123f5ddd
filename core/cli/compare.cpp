// assay compare STUDY: measured ranges side by side; with a baseline or a compare: section,
// verdicts.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <set>

#include "assay/error.h"
#include "core/cli/commands.h"
#include "core/cli/comparing.h"
#include "core/cli/verdict_text.h"
#include "core/cli/view.h"
#include "core/evidence/lint.h"
#include "core/report/formats.h"

namespace assay::cli {
namespace {

using evidence::Comparison;
using evidence::Design;
using host::ComparisonPlan;

constexpr int kUnresolved = 3, kNothingMeasured = 4;

struct CompareArguments {
  report::ModelRequest request{};
  std::vector<std::string> candidates{};
  std::optional<int64_t> pairs{};
  std::optional<double> alpha{}, min_effect{}, same_margin{}, loss_margin{};
  std::string loss_tier{};
  std::vector<std::string> allow{};
  std::string reason{};
  bool no_run = false, need_verdict = false;

  /// Verdicts are asked for by what they need: a baseline, pairs, candidates.
  bool asks_for_verdicts() const {
    return pairs || !request.baseline.empty() || !candidates.empty() || need_verdict;
  }
};

const std::set<std::string> kTiers = {"none", "T0", "T1", "T2"};

std::string known_rule(const std::string& rule) {
  for (const evidence::LintRule& known : evidence::lint_rules()) {
    if (rule == known.id) return "";
  }
  return "there is no rule '" + rule + "'; rules are L01 to L21 (docs/comparing.md)";
}

void apply_flags(Design& design, const CompareArguments& a) {
  if (a.pairs && *a.pairs % 2 != 0) {
    throw Error("--pairs must be even: pairs run in the order A B B A; got " +
                std::to_string(*a.pairs));
  }
  if (a.pairs) design.pairs = *a.pairs;
  if (a.alpha) {
    design.rule.alpha = *a.alpha;
    design.rule.minimum = evidence::minimum_pairs(*a.alpha);
  }
  if (a.min_effect) design.rule.min_effect = *a.min_effect;
  if (a.same_margin || a.min_effect) {
    design.rule.same_margin =
        a.same_margin.value_or(std::min(design.rule.same_margin, design.rule.min_effect));
  }
  if (design.rule.same_margin > design.rule.min_effect) {
    throw Error(
        "--same-margin is larger than --min-effect: a result could be both SAME and FASTER");
  }
  if (a.loss_margin) design.margin = a.loss_margin;
  if (!a.loss_tier.empty() && evidence::tier_of(a.loss_tier) != design.tier.tier) {
    design.tier.evidence.insert(
        design.tier.evidence.begin(),
        "--loss-tier; the differences ask for " + std::string(name_of(design.tier.tier)));
    design.tier.tier = evidence::tier_of(a.loss_tier);
  }
  for (const std::string& rule : a.allow) {
    design.allow[rule] = a.reason.empty() ? "--allow on the command line" : a.reason;
  }
}

/// The comparisons that the flags or the study ask for; none: only ranges are shown.
std::vector<ComparisonPlan> comparisons(const store::Reader& reader, const store::StudyInfo& study,
                                        const CompareArguments& arguments, const Context& context) {
  const nlohmann::json section = compare_section(study.resolved_json);
  const bool declared = section.is_object();
  if (!declared && !arguments.asks_for_verdicts()) return {};
  const auto components = context.components(context.plugin_path);
  const evidence::Traits traits = host::traits_of(*components);
  std::vector<ComparisonPlan> plans;
  if (declared && arguments.request.baseline.empty()) {
    plans = host::declared_comparisons(reader, study.study_id, section, traits);
    if (!arguments.candidates.empty()) {
      const std::set<std::string> wanted(arguments.candidates.begin(), arguments.candidates.end());
      std::erase_if(plans, [&](const auto& p) { return !wanted.contains(p.design.candidate); });
    }
  } else {
    Design design;
    if (declared) design = evidence::design_of_section(section);
    if (!declared) design.pairs = 0;  // what has no pairs yet gets them by --pairs alone
    plans = host::chosen_comparisons(reader, study.study_id, arguments.request.baseline,
                                     arguments.candidates, design, traits);
  }
  for (ComparisonPlan& plan : plans) apply_flags(plan.design, arguments);
  return plans;
}

bool has_pairs(const std::vector<ComparisonPlan>& plans) {
  return std::any_of(plans.begin(), plans.end(),
                     [](const ComparisonPlan& p) { return p.design.pairs > 0; });
}

bool has_rows(const std::vector<Comparison>& judged) {
  return std::any_of(judged.begin(), judged.end(),
                     [](const Comparison& c) { return c.comparison_id != 0; });
}

bool anything_measured(const std::vector<Comparison>& judged) {
  return std::any_of(judged.begin(), judged.end(), [](const Comparison& c) {
    return std::any_of(c.verdicts.begin(), c.verdicts.end(),
                       [](const auto& v) { return v.n_used > 0; });
  });
}

void run_missing(const store::StudyInfo& study, const std::vector<ComparisonPlan>& plans,
                 Context& context) {
  store::Store store(context.database);
  schedule(store, study.study_id, plans);
  SuperviseFlags flags;
  flags.table = false;
  supervise(store, study.study_id, study.name, host::run_keys(study.resolved_json), flags, context);
}

void print(const report::Model& model, const std::vector<Comparison>& judged,
           const Context& context) {
  if (context.json) {
    nlohmann::json document = report::json(model);
    if (!judged.empty()) document["comparisons"] = verdict_json(judged);
    *context.out << document.dump(2) << "\n";
    return;
  }
  *context.out << report::terminal(
      model, {.width = terminal_width(), .color = context.colored(*context.out)});
  if (judged.empty()) return;
  *context.out << "\n"
               << verdict_text(judged,
                               "assay compare " + model.study + database_flag(context) +
                                   (model.baseline.empty() ? "" : " --baseline " + model.baseline));
}

void compare(const CompareArguments& arguments, Context& context) {
  std::vector<ComparisonPlan> plans;
  store::StudyInfo study;
  {
    const store::Reader reader(context.database);
    study = chosen_study(reader, arguments.request.study);
    plans = comparisons(reader, study, arguments, context);
    require_fair(reader, study, plans, context);
  }
  if (!arguments.no_run && has_pairs(plans)) {
    run_missing(study, plans, context);
    if (context.exit_code > kNothingMeasured) return;  // stopped: what is missing is told by resume
    context.exit_code = 0;                             // runs that ended badly stand in the table
  }
  const store::Reader reader(context.database);
  const std::vector<Comparison> judged = judge(reader, study.study_id, plans);
  if (!arguments.no_run && has_rows(judged)) {
    store::Store store(context.database);
    keep(store, judged);
  }
  report::ModelRequest request = arguments.request;
  request.study = study.name;
  request.samples = context.json;
  request.database_flag = database_flag(context);
  report::Model model = report::build_model(reader, request);
  if (!judged.empty()) model.verdict = "Ranges of unpaired runs; the verdicts stand below.";
  print(model, judged, context);
  if (!judged.empty() && !anything_measured(judged)) context.exit_code = kNothingMeasured;
  if (arguments.need_verdict && context.exit_code == 0 && any_unresolved(judged)) {
    context.exit_code = kUnresolved;
  }
}

void add_verdict_flags(CLI::App& command, CompareArguments& a) {
  command
      .add_option("--candidate", a.candidates, "Recipe to compare (may be repeated; default: all)")
      ->allow_extra_args(false)
      ->type_name("RECIPE");
  command.add_option("--pairs", a.pairs, "Pairs of runs in all; missing ones are run")
      ->check(CLI::Range(int64_t{2}, int64_t{1000}).description(""))
      ->type_name("N");
  command.add_option("--alpha", a.alpha, "Error per side of FASTER and SLOWER (0.0025)")
      ->check(CLI::Range(1e-6, 0.05).description(""))
      ->type_name("P");
  command.add_option("--min-effect", a.min_effect, "Smallest effect that counts, a share (0.01)")
      ->check(CLI::Range(0.0, 1.0).description(""))
      ->type_name("SHARE");
  command.add_option("--same-margin", a.same_margin, "SAME within this share (0.01)")
      ->check(CLI::Range(0.0, 1.0).description(""))
      ->type_name("SHARE");
  command.add_option("--loss-tier", a.loss_tier, "none, T0 (bits), T1 (order of sums), T2 (seeds)")
      ->check(CLI::IsMember(kTiers).description(""))
      ->type_name("TIER");
  command.add_option("--loss-margin", a.loss_margin, "Losses are equal within this (nats)")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("NATS");
  command.add_option("--allow", a.allow, "Let findings of the linter pass, with a label")
      ->delimiter(',')
      ->check(CLI::Validator([](std::string& r) { return known_rule(r); }, ""))
      ->type_name("L05,...");
  command.add_option("--reason", a.reason, "Why they may pass; shown with the label")
      ->type_name("TEXT");
  command.add_flag("--no-run", a.no_run, "Judge what is there; run and store nothing");
  command.add_flag("--need-verdict", a.need_verdict, "Exit 3 when something stays unresolved");
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<CompareArguments>();
  report::ModelRequest& request = arguments->request;
  CLI::App* command = app.add_subcommand("compare", "The recipes of a study side by side");
  add_study_argument(*command, request.study);
  command
      ->add_option("--baseline", request.baseline,
                   "Recipe that others are judged against, shown first")
      ->type_name("RECIPE");
  command->add_option("--metric", request.metrics, "One more column (may be repeated)")
      ->allow_extra_args(false)
      ->type_name("NAME");
  command->add_flag("--all-keys", request.all_keys,
                    "All configuration keys, not only differing ones");
  add_verdict_flags(*command, *arguments);
  command->footer(R"(
Without a baseline and without a compare: section in the study, ranges are shown and nothing is
judged. Exit code: 0, 2 not comparable (the linter), 3 with --need-verdict when something stays
unresolved, 4 nothing measured.

Examples:
  assay compare quickstart
  assay compare quickstart --baseline adamw_eager_none --candidate adamw_fused_none --pairs 20
  assay compare matrix --baseline bf16 --metric step_p90_s --metric wire_bytes
  assay compare matrix --json | jq '.rows[].figures.tokens_per_s')");
  command->callback([arguments, &context] { compare(*arguments, context); });
}

}  // namespace assay::cli
