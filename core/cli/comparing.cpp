// From plans of comparisons to stored verdicts.
#include "core/cli/comparing.h"

#include <ostream>

#include "core/base/diagnostic.h"
#include "core/cli/lint_places.h"
#include "core/cli/verdict_text.h"
#include "core/cli/view.h"
#include "core/evidence/lint.h"
#include "core/evidence/timing.h"
#include "core/host/machine.h"

namespace assay::cli {
namespace {

using evidence::LintFinding;

/// At the place of the study that the finding speaks of; a machine or a build has none.
Diagnostic diagnostic_of(const LintFinding& f, const host::ComparisonPlan& c,
                         const LintPlaces& places) {
  const bool allowed = !f.allowed.empty();
  Diagnostic d = places.of(f, c);
  d.severity = allowed ? Severity::warning : Severity::error;
  d.id = f.rule;
  d.text =
      f.what + ": " + f.base + " (baseline) vs " + f.candidate + " (" + c.design.candidate + ")";
  if (allowed) d.text += " [allowed: " + f.allowed + "]";
  if (!allowed) d.hints = {f.hint, "or let it pass with a label: --allow " + f.rule};
  return d;
}

/// The findings of a comparison whose pairs are still to be planned.
std::vector<LintFinding> findings_of(const store::Reader& reader, const host::ComparisonPlan& c) {
  evidence::LintInput input = evidence::load_lint(reader, c.base, c.candidate, c.design, {});
  input.pairs = c.design.pairs;
  std::vector<LintFinding> findings = evidence::check(input);
  for (LintFinding& f : findings) {
    const auto allowed = c.design.allow.find(f.rule);
    if (allowed != c.design.allow.end()) f.allowed = allowed->second;
  }
  return findings;
}

}  // namespace

void require_fair(const store::Reader& reader, const store::StudyInfo& study,
                  const std::vector<host::ComparisonPlan>& comparisons, const Context& context) {
  const LintPlaces places(reader, study);
  std::vector<Diagnostic> errors, warnings;
  for (const host::ComparisonPlan& c : comparisons) {
    for (const LintFinding& f : findings_of(reader, c)) {
      (f.allowed.empty() ? errors : warnings).push_back(diagnostic_of(f, c, places));
    }
  }
  if (!errors.empty()) throw DiagnosticError(std::move(errors));
  *context.err << render(warnings);
}

void schedule(store::Store& store, int64_t study_id,
              const std::vector<host::ComparisonPlan>& comparisons, int stage) {
  const store::Env env = host::this_env(grid::installed_binaries().libtorch);
  host::schedule_pairs(store, study_id, env.machine_id, comparisons, stage);
}

std::vector<evidence::Comparison> judge(const store::Reader& reader, int64_t study_id,
                                        const std::vector<host::ComparisonPlan>& comparisons) {
  std::vector<evidence::Comparison> judged;
  for (const host::ComparisonPlan& c : comparisons) {
    judged.push_back(evidence::assess(reader, study_id, c.base, c.candidate, c.design));
  }
  evidence::adjust(judged);
  return judged;
}

void keep(store::Store& store, const std::vector<evidence::Comparison>& judged) {
  for (const evidence::Comparison& c : judged) {
    if (c.comparison_id != 0) evidence::store_verdicts(store, c);
  }
}

nlohmann::json compare_section(const std::string& resolved_json) {
  const auto resolved = nlohmann::json::parse(resolved_json, nullptr, /*allow_exceptions=*/false);
  return resolved.is_object() && resolved.contains("compare") ? resolved.at("compare")
                                                              : nlohmann::json();
}

bool any_unresolved(const std::vector<evidence::Comparison>& comparisons) {
  for (const evidence::Comparison& c : comparisons) {
    for (const evidence::Verdict& v : c.verdicts) {
      if (v.stage == 0 || v.method_id == "aligned.v1" || v.method_id == "target.v1") continue;
      if (v.reason == evidence::kNoPairs && c.design.value("pairs", int64_t{0}) == 0) continue;
      if (v.call == evidence::Call::unresolved || v.call == evidence::Call::not_shown ||
          v.call == evidence::Call::invalid) {
        return true;
      }
    }
  }
  return false;
}

void print_declared(store::Store& store, int64_t study_id, const std::string& study,
                    const Context& context) {
  std::vector<evidence::Comparison> comparisons;
  {
    const store::Reader reader(store.file());
    comparisons = evidence::assess_study(reader, study_id);
  }
  if (comparisons.empty()) return;
  keep(store, comparisons);
  if (context.json || context.verbosity < 0) return;
  *context.out << "\n"
               << verdict_text(comparisons, "assay compare " + study + database_flag(context));
}

}  // namespace assay::cli
