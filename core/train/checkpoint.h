// Checkpoint: which tensors of a rank make its part of a checkpoint, and loading one on any layout.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assay/api.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/writer.h"
#include "core/train/assemble.h"

namespace assay::train {

/// A tensor of this rank under its name in checkpoints.
struct StatePart {
  std::string name{};
  checkpoint::TensorKind kind = checkpoint::TensorKind::weight;
  std::string dtype{};  ///< as safetensors spells it
  Shape shape{};        ///< global
  checkpoint::Region box{};
  Tensor tensor{};         ///< as large as the box; loading writes into it
  bool first_copy = true;  ///< this rank saves it
};

/// Masters, optimizer state ("optim/<slot>/<parameter>") and what components keep. Slots that are
/// not of the parameter's shape are equal on every rank that holds a part of it.
ASSAY_API std::vector<StatePart> state_parts(Assembly& assembly);

/// The parts that this rank saves, copied to the host; the copies live as long as `copies`. Without
/// `copy` tensors on the host are pointed to where they are.
ASSAY_API std::vector<checkpoint::ShardTensor> shard_tensors(const std::vector<StatePart>& parts,
                                                             bool copy,
                                                             std::vector<Tensor>& copies);

/// All but the tensors: `step` updates are done. `config` is the run's.
ASSAY_API checkpoint::Manifest manifest_head(const Assembly& assembly, int64_t step,
                                             const nlohmann::json& config);

/// Takes this rank's boxes out of a checkpoint that any layout wrote; the number of the step to
/// come. Every rank calls it, and all throw if one does. Throws Error [R-CKPT] naming every tensor
/// that is missing, extra, misshapen or of another dtype, a changed vocabulary, seed or order of
/// data, and the file, tensor and chunk of what is damaged.
ASSAY_API int64_t load_checkpoint(Assembly& assembly, const std::filesystem::path& folder);

}  // namespace assay::train
