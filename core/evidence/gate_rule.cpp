// The `gate:` section and acceptance records.
#include <algorithm>

#include "assay/error.h"
#include "core/base/nearest.h"
#include "core/base/units.h"
#include "core/evidence/exact.h"
#include "core/evidence/gate.h"

namespace assay::evidence {
namespace {

using nlohmann::json;

constexpr double kGateAlpha = 0.005;
const std::vector<std::string> kKeys = {"metrics", "min_effect", "two_stage", "pairs",
                                        "control_pairs"};

double share(const json& value, const std::string& key) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const auto percent = parse_percent(text);
  if (percent) return *percent;
  throw Error("gate." + key + " must be a share such as 2%; got '" + text + "'");
}

void read_key(const std::string& key, const json& value, GateRule& rule) {
  if (key == "metrics") {
    rule.metrics = value.get<std::vector<std::string>>();
    rule.listed = true;
  } else if (key == "min_effect") {
    rule.min_effect = share(value, key);
  } else if (key == "two_stage") {
    rule.two_stage = value.get<bool>();
  } else if (key == "pairs") {
    rule.pairs = value.get<int64_t>();
  } else if (key == "control_pairs") {
    rule.control_pairs = value.get<int64_t>();
  } else {
    throw Error("unknown key '" + key + "' in gate", did_you_mean(nearest(key, kKeys)));
  }
}

}  // namespace

std::vector<std::string> gate_metrics() {
  std::vector<std::string> names = {"step_time", "loss_bits"};
  for (const Proxy& proxy : proxies()) names.push_back(proxy.metric);
  return names;
}

bool GateRule::gates(const std::string& metric) const {
  return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
}

Design GateRule::design() const {
  Design design;
  design.rule.alpha = kGateAlpha;
  design.rule.minimum = minimum_pairs(kGateAlpha);
  design.rule.min_effect = min_effect;
  design.rule.same_margin = min_effect;
  design.rule.above_mde = true;
  design.pairs = gates("step_time") ? pairs : 0;
  design.control_pairs = control_pairs;
  design.tier.tier = Tier::none;  // losses are gated by their bits
  design.axes = {"commit"};       // two builds are what is compared
  return design;
}

GateRule gate_rule(const json& section) {
  GateRule rule{.metrics = gate_metrics()};
  if (section.is_null()) return rule;
  if (!section.is_object()) throw Error("'gate' must be a map {metrics: [...], min_effect: 2%}");
  for (const auto& [key, value] : section.items()) {
    try {
      read_key(key, value, rule);
    } catch (const json::exception&) {
      throw Error("'gate." + key + "' cannot be " + value.dump());
    }
  }
  for (const std::string& metric : rule.metrics) {
    const std::vector<std::string> names = gate_metrics();
    if (std::find(names.begin(), names.end(), metric) != names.end()) continue;
    const std::string near = did_you_mean(nearest(metric, names));
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    throw Error("the gate knows no metric '" + metric + "'", near.empty() ? "known: " + all : near);
  }
  if (rule.pairs < minimum_pairs(kGateAlpha) || rule.pairs % 2 != 0) {
    throw Error("gate.pairs must be even and at least " +
                std::to_string(minimum_pairs(kGateAlpha)) + "; got " + std::to_string(rule.pairs));
  }
  return rule;
}

json to_json(const Accepted& a) {
  return {{"config_id", a.config_id},
          {"metric", a.metric},
          {"old_value", a.old_value ? json(*a.old_value) : json(nullptr)},
          {"new_value", a.new_value},
          {"cell_id", a.cell_id},
          {"commit", a.commit},
          {"author", a.author},
          {"reason", a.reason},
          {"made", a.made}};
}

Accepted accepted_from_json(const json& d) {
  try {
    Accepted a{.config_id = d.at("config_id"),
               .metric = d.at("metric"),
               .new_value = d.at("new_value"),
               .cell_id = d.value("cell_id", ""),
               .commit = d.value("commit", ""),
               .author = d.value("author", ""),
               .reason = d.at("reason"),
               .made = d.value("made", "")};
    if (d.contains("old_value") && d.at("old_value").is_number()) a.old_value = d.at("old_value");
    if (a.reason.empty()) throw Error("an acceptance of '" + a.metric + "' has no reason");
    return a;
  } catch (const json::exception& e) {
    throw Error(std::string("an acceptance record cannot be read: ") + e.what(),
                "records are written by: assay gate accept");
  }
}

}  // namespace assay::evidence
