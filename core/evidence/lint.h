// The fair-comparison linter: what must match between two recipes before their figures are
// compared.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/evidence/assess.h"

namespace assay::evidence {

/// One recipe as the linter sees it: its configuration, and what its runs recorded.
struct LintSide {
  std::string label{};
  std::map<std::string, std::string> config{};  ///< dotted keys
  std::set<int64_t> seeds{};
  std::set<std::string> data{};      ///< fingerprints
  std::set<std::string> machines{};  ///< device model, driver, clock policy, host: one text each
  std::set<std::string> builds{};    ///< libtorch, compiler, build type of the supervisor
  std::set<std::string> plugin_builds{};
  std::set<std::string> unfit_builds{};           ///< Debug or sanitizer builds among them
  std::map<std::string, std::string> commits{};   ///< by role: build stamp of the plugin
  std::map<std::string, std::string> formulas{};  ///< metric -> formula id (mfu, hfu)
  std::map<std::string, double> counters{};       ///< engagement, least over runs
  int64_t profiled_steps = 0, allocation_retries = 0, oom_attempts = 0;
  bool numerics_only = false;             ///< emulated arithmetic
  bool untimed = false, resumed = false;  ///< a run of a timing pair is
  /// Trials, steps and seeds of `tune:`, 0 when it was not tuned; `tuned` is the arm's own
  /// statement.
  int64_t trials = 0, trial_steps = 0, trial_seeds = 0;
  std::string tuned{};
};

struct LintInput {
  LintSide base{}, candidate{};
  std::vector<std::string> axes{};  ///< keys that the study declares as the compared ones
  int64_t pairs = 0;                ///< timing pairs that were planned; 0 = no timing claim
  int64_t fewest_pairs = 10;
};

/// Every broken rule, by id; overrides are not applied.
std::vector<LintFinding> check(const LintInput& input);

struct LintRule {
  const char* id;
  const char* holds;  ///< "tokens per optimizer step"
};
/// L01..L21, for help texts and the check of --allow.
const std::vector<LintRule>& lint_rules();

LintInput load_lint(const store::Reader& reader, const Arm& base, const Arm& candidate,
                    const Design& design, const std::vector<Pair>& pairs);

/// load_lint, check, and the reasons of `design.allow`.
std::vector<LintFinding> lint(const store::Reader& reader, const Arm& base, const Arm& candidate,
                              const Design& design, const std::vector<Pair>& pairs);

}  // namespace assay::evidence
