// Component: one entry of a plugin's manifest, and its JSON form.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assay/kind.h"
#include "assay/manifest.h"
#include "assay/options.h"

namespace assay {

struct PluginFile;

struct Component : Manifest {
  Kind kind = Kind::model;
  std::vector<OptionSpec> options{};
  const PluginFile* file = nullptr;  ///< null in a worker

  std::string id() const { return std::string(name_of(kind)) + "/" + name; }
  const OptionSpec* option(std::string_view name) const;  ///< by name or alias
};

nlohmann::json to_json(const Component& component);
/// Throws Error for a document that to_json() did not write.
Component component_from_json(const nlohmann::json& document);

nlohmann::json to_json(const OptionValue& value);
/// A JSON value read as the option's type (bytes, durations and counts as integers). Throws Error.
OptionValue option_value(const OptionSpec& spec, const nlohmann::json& value);
/// The option keys of a resolved component map ("name" and "lr" of an optimizer are the host's).
OptionValues option_values(const Component& component, const nlohmann::json& settings);

}  // namespace assay
