// Design to JSON and back; the `compare:` section of a study.
#include "core/evidence/design.h"

#include "assay/error.h"
#include "core/base/units.h"

namespace assay::evidence {
namespace {

using nlohmann::json;

json optional_number(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

std::optional<double> optional_number(const json& document, const char* key) {
  const auto found = document.find(key);
  if (found == document.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// A share written as 0.01 or "1%".
double share(const json& section, const char* key, double standard) {
  const auto found = section.find(key);
  if (found == section.end() || found->is_null()) return standard;
  if (found->is_number()) return found->get<double>();
  const std::string text = found->get<std::string>();
  if (const auto percent = parse_percent(text)) return *percent;
  return parse_real(text).value_or(standard);
}

QualityLimits limits_from(const json& document) {
  QualityLimits l;
  l.steal_share = document.value("steal_share", l.steal_share);
  l.pressure_share = document.value("pressure_share", l.pressure_share);
  l.switches_factor = document.value("switches_factor", l.switches_factor);
  l.switches_floor = document.value("switches_floor", l.switches_floor);
  l.clock_share = document.value("clock_share", l.clock_share);
  l.throttled_share = document.value("throttled_share", l.throttled_share);
  l.gap_s = document.value("gap_s", l.gap_s);
  return l;
}

/// `allow: {L05: reason}` or `allow: [L05, L07]`.
std::map<std::string, std::string> allowed(const json& section) {
  std::map<std::string, std::string> allow;
  const json& node = section.contains("allow") ? section.at("allow") : json();
  if (node.is_object()) {
    for (const auto& [rule, reason] : node.items()) {
      allow[rule] = reason.is_string() ? reason.get<std::string>() : reason.dump();
    }
  } else if (node.is_array()) {
    for (const json& rule : node) allow[rule.get<std::string>()] = "allowed by the study";
  }
  return allow;
}

}  // namespace

json to_json(const Design& d) {
  return {{"baseline", d.baseline},
          {"candidate", d.candidate},
          {"alpha", d.rule.alpha},
          {"min_effect", d.rule.min_effect},
          {"same_margin", d.rule.same_margin},
          {"same_alpha", d.rule.same_alpha},
          {"minimum", d.rule.minimum},
          {"above_mde", d.rule.above_mde},
          {"pairs", d.pairs},
          {"control_pairs", d.control_pairs},
          {"statistic", d.statistic},
          {"limits", to_json(d.limits)},
          {"tier", name_of(d.tier.tier)},
          {"tier_evidence", d.tier.evidence},
          {"winner", d.winner},
          {"margin", optional_number(d.margin)},
          {"target_loss", optional_number(d.target_loss)},
          {"allow", d.allow},
          {"axes", d.axes}};
}

Design design_from_json(const json& document) {
  Design d;
  try {
    d.baseline = document.value("baseline", d.baseline);
    d.candidate = document.value("candidate", d.candidate);
    d.rule.alpha = document.value("alpha", d.rule.alpha);
    d.rule.min_effect = document.value("min_effect", d.rule.min_effect);
    d.rule.same_margin = document.value("same_margin", d.rule.same_margin);
    d.rule.same_alpha = document.value("same_alpha", d.rule.same_alpha);
    d.rule.minimum = document.value("minimum", d.rule.minimum);
    d.rule.above_mde = document.value("above_mde", d.rule.above_mde);
    d.pairs = document.value("pairs", d.pairs);
    d.control_pairs = document.value("control_pairs", d.control_pairs);
    d.statistic = document.value("statistic", d.statistic);
    if (document.contains("limits")) d.limits = limits_from(document.at("limits"));
    d.tier.tier = tier_of(document.value("tier", name_of(d.tier.tier)));
    d.tier.evidence = document.value("tier_evidence", d.tier.evidence);
    d.winner = document.value("winner", d.winner);
    d.margin = optional_number(document, "margin");
    d.target_loss = optional_number(document, "target_loss");
    d.allow = document.value("allow", d.allow);
    d.axes = document.value("axes", d.axes);
  } catch (const json::exception& e) {
    throw Error(std::string("the stored design of a comparison cannot be read: ") + e.what());
  }
  return d;
}

Design design_of_section(const json& section) {
  Design d;
  d.rule.alpha = share(section, "alpha", d.rule.alpha);
  d.rule.min_effect = share(section, "min_effect", d.rule.min_effect);
  d.rule.same_margin =
      share(section, "same_margin", std::min(d.rule.same_margin, d.rule.min_effect));
  d.rule.minimum = minimum_pairs(d.rule.alpha);
  d.pairs = section.value("pairs", d.pairs);
  d.control_pairs = section.value("control_pairs", d.control_pairs);
  d.statistic = section.value("statistic", d.statistic);
  d.allow = allowed(section);
  const json loss = section.value("loss", json::object());
  if (loss.is_object()) {
    d.margin = optional_number(loss, "margin");
    d.target_loss = optional_number(loss, "target");
  }
  return d;
}

}  // namespace assay::evidence
