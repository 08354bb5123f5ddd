// Which loss tier a pair of recipes owes, from what their plugins declare about every difference.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/evidence/verdict.h"

namespace assay::evidence {

/// A resolved configuration as dotted keys with their values as JSON text.
std::map<std::string, std::string> flat_config(const nlohmann::json& config);

struct KeyDifference {
  std::string key{};                ///< "memory.name", "train.micro_batch"
  std::string base{}, candidate{};  ///< empty: that arm has no such key
};

/// Keys whose values differ, `seed` left out. Options of a component that only one arm has are left
/// out too: the difference is its name.
std::vector<KeyDifference> config_differences(const nlohmann::json& base,
                                              const nlohmann::json& candidate);

/// What a plugin says about a key.
struct Trait {
  bool known = false;              ///< the component is installed
  bool bitwise_identical = false;  ///< of a component that is named: provides it
  bool numerics = true;            ///< of an option: it affects numerics
};
/// Asked for "memory", "full", "" (the component) or "optim", "adamw", "implementation" (an
/// option).
using Traits = std::function<Trait(const std::string& position, const std::string& component,
                                   const std::string& option)>;

/// The weakest tier that any difference asks for:
///   T0 nothing differs; both components provide `bitwise.identical`; the option affects memory or
///      speed only
///   T1 another order of sums: mesh, parallel, comm, compile, train.micro_batch, grad_accum,
///   threads T2 everything else: precision, optimizer, model, data, schedule; or a plugin that is
///   unknown
/// Evidence names every difference with its tier, the weakest first.
TierChoice choose_tier(const nlohmann::json& base, const nlohmann::json& candidate,
                       const Traits& traits);

/// True when recipes differ in more than precision at T2: their final quality is meant to differ,
/// so a winner may be named (judge_seeds), else only parity is in question (judge_parity).
bool quality_may_differ(const nlohmann::json& base, const nlohmann::json& candidate);

}  // namespace assay::evidence
