// From differing keys to a tier.
#include "core/evidence/tier.h"

#include <algorithm>
#include <set>

namespace assay::evidence {
namespace {

using nlohmann::json;

const std::set<std::string> kSumOrder = {"mesh", "parallel", "comm", "compile"};
const std::set<std::string> kSumOrderKeys = {"train.micro_batch", "train.grad_accum",
                                             "train.threads_per_rank"};
const std::set<std::string> kWithoutLoss = {"train.save_weights", "train.warmup_steps"};
const std::set<std::string> kComponents = {"memory", "compile", "comm", "precision",
                                           "optim",  "model",   "data"};

void flatten(const json& node, const std::string& prefix, std::map<std::string, std::string>& out) {
  for (const auto& [key, value] : node.items()) {
    if (value.is_object()) {
      flatten(value, prefix + key + ".", out);
    } else {
      out[prefix + key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
}

std::string head(const std::string& key) { return key.substr(0, key.find('.')); }

/// "memory" of "memory.name", "parallel.tp" of "parallel.tp.sp"; empty for host keys.
std::string position_of(const std::string& key) {
  const std::string first = head(key);
  if (first == "parallel") return key.substr(0, key.find('.', first.size() + 1));
  return kComponents.contains(first) ? first : "";
}

std::string value_in(const std::map<std::string, std::string>& config, const std::string& key) {
  const auto found = config.find(key);
  return found == config.end() ? "" : found->second;
}

class Chooser {
 public:
  Chooser(const json& base, const json& candidate, const Traits& traits)
      : base_(flat_config(base)), candidate_(flat_config(candidate)), traits_(traits) {}

  Tier tier_of(const KeyDifference& d, std::string& why) const {
    const std::string position = position_of(d.key);
    if (position.empty()) return host_tier(d.key, why);
    if (d.key == position + ".name") return component_tier(position, d, why);
    const std::string option = d.key.substr(position.size() + 1);
    const Trait trait = traits_(position, value_in(candidate_, position + ".name"), option);
    if (trait.known && !trait.numerics) {
      why = "changes memory or speed only";
      return Tier::t0;
    }
    why = trait.known ? "affects numerics" : "its plugin is not installed here";
    return trait.known ? weakest_of(position) : Tier::t2;
  }

 private:
  static Tier weakest_of(const std::string& position) {
    return kSumOrder.contains(head(position)) ? Tier::t1 : Tier::t2;
  }

  static Tier host_tier(const std::string& key, std::string& why) {
    if (kWithoutLoss.contains(key)) {
      why = "enters no loss";
      return Tier::t0;
    }
    const bool order = kSumOrder.contains(head(key)) || kSumOrderKeys.contains(key);
    why = order ? "another order of sums" : "another training run";
    return order ? Tier::t1 : Tier::t2;
  }

  Tier component_tier(const std::string& position, const KeyDifference& d, std::string& why) const {
    const auto identical = [&](const std::string& name) {
      return !name.empty() && traits_(position, name, "").bitwise_identical;
    };
    if (identical(d.base) && identical(d.candidate)) {
      why = "both provide bitwise.identical";
      return Tier::t0;
    }
    const Tier tier = weakest_of(position);
    why = tier == Tier::t1 ? "another order of sums" : "other numerics";
    return tier;
  }

  const std::map<std::string, std::string> base_, candidate_;
  const Traits& traits_;
};

}  // namespace

std::map<std::string, std::string> flat_config(const json& config) {
  std::map<std::string, std::string> flat;
  flatten(config, "", flat);
  return flat;
}

std::vector<KeyDifference> config_differences(const json& base, const json& candidate) {
  const auto a = flat_config(base), b = flat_config(candidate);
  std::set<std::string> keys;
  for (const auto& [key, value] : a) keys.insert(key);
  for (const auto& [key, value] : b) keys.insert(key);
  std::vector<KeyDifference> differences;
  for (const std::string& key : keys) {
    const KeyDifference d{.key = key, .base = value_in(a, key), .candidate = value_in(b, key)};
    if (key == "seed" || d.base == d.candidate) continue;
    const std::string position = position_of(key);
    const std::string name = position + ".name";
    const bool implied = !position.empty() && key != name && a.contains(key) != b.contains(key) &&
                         value_in(a, name) != value_in(b, name);
    if (!implied) differences.push_back(d);
  }
  return differences;
}

TierChoice choose_tier(const json& base, const json& candidate, const Traits& traits) {
  const Chooser chooser(base, candidate, traits);
  std::vector<std::pair<Tier, std::string>> reasons;
  for (const KeyDifference& d : config_differences(base, candidate)) {
    std::string why;
    const Tier tier = chooser.tier_of(d, why);
    const auto shown = [](const std::string& v) { return v.empty() ? std::string("none") : v; };
    reasons.emplace_back(tier, d.key + ": " + shown(d.base) + " -> " + shown(d.candidate) + ": " +
                                   why + " (" + name_of(tier) + ")");
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  TierChoice choice{.tier = reasons.empty() ? Tier::t0 : reasons.front().first};
  for (auto& [tier, text] : reasons) choice.evidence.push_back(std::move(text));
  if (reasons.empty()) choice.evidence.push_back("the configurations are equal (T0)");
  return choice;
}

bool quality_may_differ(const json& base, const json& candidate) {
  const auto differences = config_differences(base, candidate);
  return std::any_of(differences.begin(), differences.end(), [](const KeyDifference& d) {
    const std::string first = head(d.key);
    return first != "precision" && first != "memory" && !kSumOrder.contains(first) &&
           !kSumOrderKeys.contains(d.key) && !kWithoutLoss.contains(d.key);
  });
}

}  // namespace assay::evidence
