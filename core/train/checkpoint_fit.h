// Whether a checkpoint fits a run: names, shapes, dtypes, vocabulary, and the order of its data.
#pragma once

#include <filesystem>
#include <string>

#include "assay/api.h"
#include "core/checkpoint/manifest.h"
#include "core/train/assemble.h"

namespace assay::train {

/// Name and global shape of a slot of optimizer state.
std::string slot_name(const StateSlot& slot, const ParameterSpec& parameter);
Shape slot_shape(const StateSlot& slot, const ParameterSpec& parameter);

/// Throws Error [R-CKPT] naming everything that does not fit, at once.
void require_fit(const Assembly& assembly, const checkpoint::Manifest& manifest,
                 const std::filesystem::path& folder);

}  // namespace assay::train
