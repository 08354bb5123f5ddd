// Places: where the settings of a study stand, kept with the study, so that what is found about its
// stored cells (a comparison that is not fair) points into the YAML.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/diagnostic.h"

namespace assay::grid {

struct Study;

/// Places by scope and key. Scopes are axis points as "arm=float8" (key "": the point itself),
/// "derive", "set" (of blocks without a label), "--set", "base", "defaults", and "compare" with its
/// own keys.
class Places {
 public:
  Places() = default;
  /// What document() gave; anything else has no place.
  explicit Places(nlohmann::json document);

  static Places of(const Study& study);
  static std::string point(const std::string& axis, const std::string& label);

  /// Place and excerpt alone; nothing where the study does not set the key.
  std::optional<Diagnostic> find(const std::string& scope, const std::string& key) const;
  const nlohmann::json& document() const { return document_; }

 private:
  /// {"files": [name], "lines": {"file:line": text}, "at": {scope: {key: [file, line, column,
  /// length]}}}
  nlohmann::json document_ = nlohmann::json::object();
};

}  // namespace assay::grid
