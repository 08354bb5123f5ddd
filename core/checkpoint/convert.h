// convert: a checkpoint's weights as one safetensors file under the model's own (Hugging Face)
// names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/checkpoint/reader.h"

namespace assay::checkpoint {

struct Converted {
  int64_t tensors = 0;
  int64_t bytes = 0;  ///< of data
};

/// Writes beside `out`, fsyncs, renames; memory for one tensor at a time. `dtype` "F64", "F32" or
/// "BF16" rounds to nearest even, through F32 as LibTorch does; empty keeps what is stored. Throws
/// Error for another dtype, InfrastructureError for a failed write.
Converted convert(Reader& reader, const std::filesystem::path& out, const std::string& dtype = {});

}  // namespace assay::checkpoint
