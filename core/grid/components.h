// Components: what a plan asks of the installed plugins; tests answer from data.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/catalogue.h"

namespace assay::grid {

/// The const functions of Catalogue, with the same errors.
class Components {
 public:
  virtual ~Components() = default;
  virtual const Component* find(Kind kind, std::string_view name) const = 0;
  virtual std::vector<std::string> names(Kind kind) const = 0;
  virtual Diagnostic unknown(Kind kind, std::string_view name) const = 0;
  virtual nlohmann::json facts(const FactsRequest& request) const = 0;
  virtual void prepare_facts(std::span<const FactsRequest> requests) const = 0;
};

std::unique_ptr<Components> components_of(Catalogue catalogue);

}  // namespace assay::grid
