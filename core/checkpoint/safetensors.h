// The safetensors file format without LibTorch: an 8-byte little-endian header length, a JSON
// header (name -> dtype, shape, data_offsets), then raw little-endian data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/checkpoint/region.h"

namespace assay::checkpoint {

/// One tensor of a file; `begin` and `end` are bytes from the start of the file.
struct FileTensor {
  std::string dtype{};  ///< "F32"
  Shape shape{};
  uint64_t begin = 0, end = 0;
};

using FileTensors = std::map<std::string, FileTensor>;

/// Bytes of one element, 0 for a name that safetensors does not know.
size_t element_bytes(std::string_view dtype);

/// The header of a file with these tensors (name; dtype and shape are read) in this order, data
/// aligned to 8 bytes; fills their begin and end.
std::string make_header(std::vector<std::pair<std::string, FileTensor>>& tensors,
                        const std::map<std::string, std::string>& metadata = {});

/// Throws Error naming the file and what is wrong: no such file, truncated, a header that is not
/// JSON, offsets outside of the data, an unknown dtype, a size that does not match the shape.
FileTensors read_header(const std::filesystem::path& file);

}  // namespace assay::checkpoint
