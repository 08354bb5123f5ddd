// Weights: exports a model's parameters and imports them, by name, whatever the layout.
#pragma once

#include <filesystem>

#include "assay/api.h"
#include "core/train/assemble.h"

namespace assay::train {

/// Writes the whole parameters to one safetensors file; every rank calls it, rank 0 writes.
ASSAY_API void export_weights(Assembly& assembly, const std::filesystem::path& file);

/// Each rank takes its boxes out of the file. Throws Error naming missing, extra and misshapen
/// parameters, all at once.
ASSAY_API void import_weights(Assembly& assembly, const std::filesystem::path& file);

}  // namespace assay::train
