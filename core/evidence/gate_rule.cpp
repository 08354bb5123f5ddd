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

constexpr int64_t kMostPairs = 1000;

std::string shown(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::optional<double> share(const json& value) {
  const auto number = value.is_number()   ? std::optional(value.get<double>())
                      : value.is_string() ? parse_percent(value.get<std::string>())
                                          : std::nullopt;
  return number && *number >= 0 && *number <= 1 ? number : std::nullopt;
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

/// Reads a section into a rule, and notes what cannot be read.
class RuleReader {
 public:
  GateRule read(const json& section) {
    rule_.metrics = gate_metrics();
    if (section.is_null()) return rule_;
    if (!section.is_object()) {
      fail({},
           "'gate' must be a map {metrics: [...], min_effect: 2%}; got '" + shown(section) + "'");
      return rule_;
    }
    for (const auto& [key, value] : section.items()) read_key(key, value);
    return rule_;
  }
  std::vector<SectionError> errors{};

 private:
  void read_key(const std::string& key, const json& value) {
    if (key == "metrics") {
      metrics(value);
    } else if (key == "min_effect") {
      const auto effect = share(value);
      if (!effect) wrong(key, "a share such as 2%, at most 100%", value);
      rule_.min_effect = effect.value_or(rule_.min_effect);
    } else if (key == "two_stage") {
      if (!value.is_boolean()) return wrong(key, "true or false", value);
      rule_.two_stage = value.get<bool>();
    } else if (key == "pairs") {
      const int64_t least = minimum_pairs(kGateAlpha);
      const auto pairs = whole(value, least);
      if (!pairs || *pairs % 2 != 0) {
        return wrong(key,
                     "even, from " + std::to_string(least) + " to " + std::to_string(kMostPairs),
                     value);
      }
      rule_.pairs = *pairs;
    } else if (key == "control_pairs") {
      const auto pairs = whole(value, 0);
      if (!pairs) return wrong(key, "a whole number up to " + std::to_string(kMostPairs), value);
      rule_.control_pairs = *pairs;
    } else {
      const std::string near = did_you_mean(nearest(key, kKeys));
      errors.push_back({.path = {key},
                        .at_key = true,
                        .id = "G04",
                        .text = "unknown key '" + key + "' in gate",
                        .hints = {near.empty() ? "allowed: " + listed(kKeys) : near}});
    }
  }

  void metrics(const json& value) {
    if (!value.is_array()) return wrong("metrics", "a list of names, such as [wire_bytes]", value);
    const std::vector<std::string> names = gate_metrics();
    rule_.metrics.clear();
    rule_.listed = true;
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string metric = shown(value[i]);
      rule_.metrics.push_back(metric);
      if (std::find(names.begin(), names.end(), metric) != names.end()) continue;
      const std::string near = did_you_mean(nearest(metric, names));
      errors.push_back({.path = {"metrics", std::to_string(i)},
                        .id = "G14",
                        .text = "the gate knows no metric '" + metric + "'",
                        .hints = {near.empty() ? "known: " + listed(names) : near}});
    }
  }

  static std::optional<int64_t> whole(const json& value, int64_t least) {
    if (!value.is_number_integer()) return std::nullopt;
    const auto number = value.get<int64_t>();
    return number >= least && number <= kMostPairs ? std::optional(number) : std::nullopt;
  }

  void wrong(const std::string& key, const std::string& allowed, const json& value) {
    fail({key}, "'gate." + key + "' must be " + allowed + "; got '" + shown(value) + "'");
  }
  void fail(std::vector<std::string> path, const std::string& text) {
    errors.push_back({.path = std::move(path), .id = "G15", .text = text});
  }

  GateRule rule_{};
};

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

std::vector<SectionError> check_gate(const json& section) {
  RuleReader reader;
  reader.read(section);
  return std::move(reader.errors);
}

GateRule gate_rule(const json& section) {
  RuleReader reader;
  GateRule rule = reader.read(section);
  if (reader.errors.empty()) return rule;
  const SectionError& error = reader.errors.front();
  throw Error(error.text, error.hints.empty() ? "" : error.hints.front());
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
