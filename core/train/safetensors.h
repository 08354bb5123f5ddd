// safetensors: tensors to and from Hugging Face's file format (core/checkpoint/safetensors.h).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "assay/api.h"
#include "assay/tensor.h"

namespace assay::train {

using NamedTensors = std::map<std::string, Tensor>;

/// "F32", as the format spells it. Throws Error naming the tensor for a dtype without a name.
ASSAY_API std::string safetensors_dtype(at::ScalarType dtype, const std::string& tensor);

/// Writes beside the file, fsyncs, renames. Tensors in name order, contiguous, on the CPU.
/// Throws Error for a dtype without a safetensors name, InfrastructureError for a failed write.
ASSAY_API void write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                                 const std::map<std::string, std::string>& metadata = {});

/// Throws Error naming the file and what is wrong: no such file, truncated, a header that is not
/// JSON, offsets outside of the data, an unknown dtype, a size that does not match the shape.
ASSAY_API NamedTensors read_safetensors(const std::filesystem::path& file);

}  // namespace assay::train
