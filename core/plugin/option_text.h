// Option values as people write them: "64MiB", "30s", "[a, b]".
#pragma once

#include <string>
#include <string_view>

#include "assay/options.h"

namespace assay {

/// Reads `text` by the type that the option declares and checks it. Throws Error (G14, G15 text).
OptionValue parse_option(const OptionSpec& spec, std::string_view text);

/// A spelling that parse_option() reads back and that stands in YAML as it is.
std::string print_option(const OptionSpec& spec, const OptionValue& value);

/// "[0, 1]", ">= 1", "auto|keep"; empty if any value will do.
std::string allowed_values(const OptionSpec& spec);

}  // namespace assay
