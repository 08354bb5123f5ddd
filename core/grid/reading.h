// Reading: a YAML scalar read by the type that its option declares, never by its spelling.
#pragma once

#include <optional>
#include <string>

#include "assay/options.h"
#include "core/grid/node.h"

namespace assay::grid {

/// The value, or nothing after an error (G07, G14, G15) at the node's place. `key` names the option
/// in messages. A path becomes absolute, relative to the folder of its file.
std::optional<OptionValue> read_value(const Node& node, const OptionSpec& spec,
                                      const std::string& key, Findings& findings);

/// The text after which `key` may not have `value`, or nothing if it may: choices and ranges.
std::optional<std::string> check_value(const OptionSpec& spec, const std::string& key,
                                       const OptionValue& value);

}  // namespace assay::grid
