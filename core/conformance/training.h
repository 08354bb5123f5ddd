// A short training run inside the checking process, with the subject and installed companions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/conformance/subject.h"

namespace assay::conformance {

/// What one rank reported.
struct RankRun {
  std::vector<nlohmann::json> rows{};

  std::vector<int64_t> integers(const char* column) const;  ///< of the training steps
  std::vector<double> reals(const char* column) const;
  double metric(const std::string& name) const;  ///< NaN if it was not reported
  nlohmann::json facts() const;
};

/// A tiny model on learnable rows, everything else at its plainest: 4 steps of 4 rows of 32 tokens.
nlohmann::json plain_config();

/// The same with the subject as the component of its kind.
nlohmann::json with_subject(const Subject& subject, nlohmann::json config = plain_config());

/// Skips the running test (and gives false) if a companion of plain_config() is not installed.
bool load_companions(const nlohmann::json& config);

/// Trains every rank, as threads of this process; throws what a rank threw.
std::vector<RankRun> train(const nlohmann::json& config, int world = 1);

}  // namespace assay::conformance
