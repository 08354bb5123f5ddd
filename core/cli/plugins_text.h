// What `assay plugins list` and `describe` print.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/plugin/catalogue.h"

namespace assay::cli {

struct ListOptions {
  std::optional<Kind> kind{};
  bool all = false;  ///< the whole text of each refusal, and files without components
};

std::string list_text(const Catalogue& catalogue, const ListOptions& options);
nlohmann::json list_json(const Catalogue& catalogue, const ListOptions& options);

/// "optim/lion" -> kind and name. Throws Error.
std::pair<Kind, std::string> parse_component_id(std::string_view id);

std::string describe_text(const Component& component, const nlohmann::json& facts);
/// One study key with every option at its default, or at the value in `settings`.
std::string describe_yaml(const Component& component, const OptionValues& settings);

}  // namespace assay::cli
