// Findings per cell and metric, and the code they make together.
#include "core/evidence/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/evidence/exact.h"

namespace assay::evidence {
namespace {

constexpr double kPercent = 100;
constexpr const char* kTime = "step_time";
constexpr const char* kBits = "loss_bits";

std::optional<double> value_of(const std::vector<std::pair<std::string, double>>& values,
                               const std::string& metric) {
  for (const auto& [name, value] : values) {
    if (name == metric) return value;
  }
  return std::nullopt;
}

class CellGate {
 public:
  CellGate(const GateRule& rule, const GateCell& cell, const std::vector<Accepted>& accepted,
           std::vector<GateFinding>& findings)
      : rule_(rule), cell_(cell), accepted_(accepted), findings_(findings) {}

  void judge(bool gate_time) {
    if (!has_figures()) return;
    for (const std::string& metric : rule_.metrics) {
      if (metric == kTime) {
        if (gate_time) time();
      } else if (metric == kBits) {
        bits();
      } else {
        exact(metric);
      }
    }
  }

 private:
  /// A build that did not end well has none.
  bool has_figures() {
    if (cell_.base_state == "oom" && cell_.cand_state == "oom") return false;  // as it was
    if (cell_.base_state == "oom" && cell_.cand_state == "ok") {
      add("run", GateOutcome::pass, "the baseline build ran out of memory, the candidate does not");
      return false;
    }
    if (cell_.base_state != "ok") {
      add("run", GateOutcome::nothing, "the baseline build has no figures: " + cell_.base_state);
      return false;
    }
    if (cell_.cand_state == "ok") return true;
    const bool own_fault = cell_.cand_state == "fail" || cell_.cand_state == "oom" ||
                           cell_.cand_state == "timeout" || cell_.cand_state == "invalid";
    add("run", own_fault ? GateOutcome::regression : GateOutcome::nothing,
        "the candidate build has no figures: " + cell_.cand_state);
    return false;
  }

  void time() {
    const Verdict *first = nullptr, *second = nullptr;
    for (const Verdict& v : cell_.verdicts) {
      if (v.metric != kTime) continue;
      if (v.stage == 1) first = &v;
      if (v.stage == 2) second = &v;
    }
    if (!first || first->n_used == 0) {
      add(kTime, GateOutcome::nothing, "no pair was measured");
      return;
    }
    const Call both =
        rule_.two_stage && first->call == Call::slower
            ? two_stages(first->call, second ? std::optional(second->call) : std::nullopt)
            : first->call;
    const Verdict& shown =
        second ? *second : *first;  // stage 1 was selected: its size is too large
    std::string text = fmt::format("{}", name_of(both));
    if (shown.estimate) text += fmt::format(" {:+.2f} %", kPercent * *shown.change());
    text += fmt::format(", {} pairs{}", shown.n_used, second ? " of stage 2" : "");
    if (shown.mde) text += fmt::format(", MDE {:.2g} %", kPercent * std::expm1(*shown.mde));
    if (!shown.reason.empty()) text += ", " + shown.reason;
    if (both == Call::slower) {
      GateFinding& f = add(kTime, GateOutcome::regression, text);
      f.candidate = 1 + *shown.change();
      f.base = 1;
      clear_time(f);
    } else if (both == Call::faster) {
      add(kTime, GateOutcome::pass, text + ": a new baseline may be accepted");
    } else {
      add(kTime, both == Call::same ? GateOutcome::pass : GateOutcome::unresolved, text);
    }
  }

  void exact(const std::string& metric) {
    const auto found = std::find_if(proxies().begin(), proxies().end(),
                                    [&](const Proxy& p) { return p.metric == metric; });
    const double tolerance = found->tolerance;
    hold(metric, [tolerance](double candidate, double other) {
      return candidate <= other + tolerance * std::abs(other);
    });
  }

  void bits() {
    hold(kBits, [](double candidate, double other) { return candidate == other; });
  }

  /// Holds the candidate's value to that of the baseline build, to the anchors and to the last
  /// record; a record of this value (or a larger one) clears what the others say.
  template <class Within>
  void hold(const std::string& metric, const Within& within) {
    const auto base = value_of(cell_.base, metric), candidate = value_of(cell_.candidate, metric);
    const Accepted* record = last_record(metric);
    const auto anchors = anchors_of(metric);
    if (!candidate || (!base && anchors.empty() && !record)) return;
    GateFinding& f = add(metric, GateOutcome::pass, text_of(metric, base, *candidate));
    f.base = base;
    f.candidate = candidate;
    if (base && !within(*candidate, *base)) f.outcome = GateOutcome::regression;
    for (const GateCell::Anchor& anchor : anchors) {
      if (within(*candidate, anchor.value)) continue;
      f.outcome = GateOutcome::regression;
      f.text += fmt::format("; {} anchor {:.17g}", anchor.name, anchor.value);
    }
    if (!record) return;
    if (!within(*candidate, record->new_value)) {
      f.text += fmt::format("; accepted {:.17g}", record->new_value);
      f.outcome = GateOutcome::regression;
    } else if (f.outcome == GateOutcome::regression) {
      f.outcome = GateOutcome::pass;
      f.accepted = record->reason;
    }
  }

  std::vector<GateCell::Anchor> anchors_of(const std::string& metric) const {
    std::vector<GateCell::Anchor> anchors;
    for (const GateCell::Anchor& a : cell_.anchors) {
      if (a.metric == metric) anchors.push_back(a);
    }
    return anchors;
  }

  const Accepted* last_record(const std::string& metric) const {
    const Accepted* last = nullptr;
    for (const Accepted& a : accepted_) {
      if (a.config_id == cell_.config_id && a.metric == metric) last = &a;
    }
    return last;
  }

  static std::string text_of(const std::string& metric, const std::optional<double>& base,
                             double candidate) {
    if (metric == kBits) {
      return !base                ? "losses and gradient norms hashed"
             : *base == candidate ? "losses and gradient norms equal in bits"
                                  : "losses or gradient norms differ in bits";
    }
    return base ? change(*base, candidate) : fmt::format("{:.17g}", candidate);
  }

  static std::string change(double base, double candidate) {
    if (base == candidate) return fmt::format("{:.17g}, unchanged", candidate);
    const std::string share =
        base == 0 ? "" : fmt::format(" ({:+.3g} %)", kPercent * (candidate / base - 1));
    return fmt::format("{:.17g} -> {:.17g}{}", base, candidate, share);
  }

  void clear_time(GateFinding& f) {
    for (const Accepted& a : accepted_) {
      if (a.config_id != cell_.config_id || a.metric != kTime || a.cell_id != cell_.cand_cell) {
        continue;
      }
      f.outcome = GateOutcome::pass;
      f.accepted = a.reason;
    }
  }

  GateFinding& add(const std::string& metric, GateOutcome outcome, const std::string& text) {
    findings_.push_back({.cell = cell_.label,
                         .config_id = cell_.config_id,
                         .metric = metric,
                         .outcome = outcome,
                         .text = text});
    return findings_.back();
  }

  const GateRule& rule_;
  const GateCell& cell_;
  const std::vector<Accepted>& accepted_;
  std::vector<GateFinding>& findings_;
};

bool measured(const std::vector<GateCell>& cells, const std::string& metric) {
  return std::any_of(cells.begin(), cells.end(), [&](const GateCell& cell) {
    return std::any_of(cell.candidate.begin(), cell.candidate.end(),
                       [&](const auto& value) { return value.first == metric; });
  });
}

}  // namespace

std::vector<GateFinding> judge_gate(const GateRule& rule, const std::vector<GateCell>& cells,
                                    const std::vector<Accepted>& accepted, bool gate_time) {
  std::vector<GateFinding> findings;
  for (const GateCell& cell : cells) CellGate(rule, cell, accepted, findings).judge(gate_time);
  if (!rule.listed) return findings;
  for (const std::string& metric : rule.metrics) {  // listed, so somebody counts on it
    if (metric == kTime && !gate_time) continue;
    const bool seen = std::any_of(findings.begin(), findings.end(),
                                  [&](const GateFinding& f) { return f.metric == metric; });
    if (seen) continue;
    findings.push_back({.cell = "all cells",
                        .metric = metric,
                        .outcome = GateOutcome::nothing,
                        .text = measured(cells, metric)
                                    ? "no accepted value to hold it to: assay gate accept"
                                    : "listed in gate.metrics, measured in no cell"});
  }
  return findings;
}

bool fires(const std::vector<GateCell>& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const GateCell& cell) {
    return std::any_of(cell.verdicts.begin(), cell.verdicts.end(), [](const Verdict& v) {
      return v.metric == kTime && v.stage == 1 && v.call == Call::slower;
    });
  });
}

GateOutcome worst(const std::vector<GateFinding>& findings) {
  using enum GateOutcome;
  if (findings.empty()) return nothing;
  for (const GateOutcome outcome : {usage, regression, nothing, unresolved}) {
    for (const GateFinding& f : findings) {
      if (f.outcome == outcome) return outcome;
    }
  }
  return pass;
}

const char* name_of(GateOutcome outcome) {
  switch (outcome) {
    case GateOutcome::pass:
      return "pass";
    case GateOutcome::regression:
      return "regression";
    case GateOutcome::usage:
      return "not comparable";
    case GateOutcome::unresolved:
      return "unresolved";
    case GateOutcome::nothing:
      return "nothing measured";
  }
  return "nothing measured";
}

}  // namespace assay::evidence
