// Design: how two recipes are compared, fixed before anything is measured; stored as design_json.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/evidence/pair_test.h"
#include "core/evidence/quality.h"
#include "core/evidence/verdict.h"

namespace assay::evidence {

struct Design {
  std::string baseline{}, candidate{};  ///< labels
  PairRule rule{};
  int64_t pairs = 20;             ///< planned, even
  int64_t control_pairs = 8;      ///< A/A, per block
  std::string statistic = "p10";  ///< of a run's used step times: p10, median, min
  QualityLimits limits{};
  TierChoice tier{};
  bool winner = false;                  ///< at T2: recipes of other quality, a winner may be named
  std::optional<double> margin{};       ///< of losses, nats; nothing = measured exchange rate
  std::optional<double> target_loss{};  ///< of tokens-to-target
  std::map<std::string, std::string> allow{};  ///< lint rule -> reason
  std::vector<std::string> axes{};             ///< keys that are the compared thing itself
};

nlohmann::json to_json(const Design& design);
/// Missing keys keep their defaults. Throws Error for a document that to_json() did not write.
Design design_from_json(const nlohmann::json& document);

/// Reads a checked `compare:` section (percents as "1%") over the defaults; tier and labels are the
/// caller's.
Design design_of_section(const nlohmann::json& section);

}  // namespace assay::evidence
