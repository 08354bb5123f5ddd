// Flavours of llama3: the published sizes and three small ones for CPUs, and the options that name
// and change them.
#pragma once

#include <vector>

#include "../decoder/options.h"

namespace assay::models {

struct Llama3Options : DecoderOptions {
  static void declare(OptionTable<Llama3Options>& t);
};

/// The table's sizes with the options' changes. Throws Error for an unknown flavour.
Dimensions dimensions(const Llama3Options& options);

/// Names of the table, in its order.
std::vector<std::string> flavour_names();

}  // namespace assay::models
