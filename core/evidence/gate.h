// The gate's judgement: verdicts of candidate against baseline build, accepted values, exit code.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/section_error.h"
#include "core/evidence/design.h"
#include "core/evidence/pair_test.h"
#include "core/evidence/verdict.h"

namespace assay::evidence {

/// Codes of `assay gate`; 0 pass. Of several the first of 2, 1, 4, 3, 0 counts.
enum class GateOutcome { pass = 0, regression = 1, usage = 2, unresolved = 3, nothing = 4 };

/// `gate:` of a study.
struct GateRule {
  std::vector<std::string> metrics{};  ///< gated ones; by default all that are known
  bool listed = false;                 ///< the study lists them: each must have been measured
  double min_effect = 0.02;            ///< of step time
  bool two_stage = true;
  int64_t pairs = 20, control_pairs = 8;

  bool gates(const std::string& metric) const;
  Design design() const;  ///< alpha .005 per side, above the detectable effect
};

/// Everything that is wrong with a `gate:` section, null being none: unknown keys (G04), unknown
/// metrics (G14), wrong values (G15).
std::vector<SectionError> check_gate(const nlohmann::json& section);
/// Throws Error with the first that check_gate() finds.
GateRule gate_rule(const nlohmann::json& section);
/// "step_time", every proxy, "loss_bits".
std::vector<std::string> gate_metrics();

/// A value that a person accepted, with its reason.
struct Accepted {
  std::string config_id{}, metric{};
  std::optional<double> old_value{};
  double new_value = 0;
  std::string cell_id{};  ///< the accepted build's: step_time is accepted for that build alone
  std::string commit{}, author{}, reason{}, made{};
};
nlohmann::json to_json(const Accepted& accepted);
Accepted accepted_from_json(const nlohmann::json& document);  ///< throws Error

/// One gated metric of one cell.
struct GateFinding {
  std::string cell{}, config_id{}, metric{};
  GateOutcome outcome = GateOutcome::pass;
  std::string text{};  ///< what was seen, one line
  std::optional<double> base{}, candidate{};
  std::string accepted{};  ///< reason of the record that clears it
};

/// What both builds of one cell showed.
struct GateCell {
  std::string label{}, config_id{}, cand_cell{};
  std::string base_state{}, cand_state{};  ///< "ok" or why a build has no figures
  std::vector<Verdict> verdicts{};         ///< of the comparison; empty without pairs
  /// Deterministic values; without a baseline build the candidate is held to anchors and records.
  std::vector<std::pair<std::string, double>> base{}, candidate{};
  /// Values that anchors hold: (anchor, metric, value).
  struct Anchor {
    std::string name{}, metric{};
    double value = 0;
  };
  std::vector<Anchor> anchors{};
};

std::vector<GateFinding> judge_gate(const GateRule& rule, const std::vector<GateCell>& cells,
                                    const std::vector<Accepted>& accepted, bool gate_time);

/// True if stage 1 of any cell calls a slower candidate: then stage 2 must run.
bool fires(const std::vector<GateCell>& cells);

/// Nothing measured at all is `nothing`, never a pass.
GateOutcome worst(const std::vector<GateFinding>& findings);
const char* name_of(GateOutcome outcome);  ///< "pass", "regression", ...

}  // namespace assay::evidence
