// Dtypes of both worlds; the header and its checks are core/checkpoint's.
#include "core/train/safetensors.h"

#include <ATen/ops/empty.h>

#include <array>
#include <utility>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/checkpoint/file.h"
#include "core/checkpoint/safetensors.h"

namespace assay::train {
namespace {

constexpr std::array<std::pair<at::ScalarType, const char*>, 11> kDtypes{{
    {at::kDouble, "F64"},
    {at::kFloat, "F32"},
    {at::kBFloat16, "BF16"},
    {at::kHalf, "F16"},
    {at::kFloat8_e4m3fn, "F8_E4M3"},
    {at::kFloat8_e5m2, "F8_E5M2"},
    {at::kLong, "I64"},
    {at::kInt, "I32"},
    {at::kChar, "I8"},
    {at::kByte, "U8"},
    {at::kBool, "BOOL"},
}};

at::ScalarType dtype_of(const std::filesystem::path& file, const std::string& name) {
  for (const auto& [type, text] : kDtypes) {
    if (name == text) return type;
  }
  throw Error(file.string() + " has tensors of dtype " + name + ", which LibTorch lacks here");
}

}  // namespace

std::string safetensors_dtype(at::ScalarType dtype, const std::string& tensor) {
  for (const auto& [type, name] : kDtypes) {
    if (type == dtype) return name;
  }
  throw Error("tensor '" + tensor +
              "' has a dtype that safetensors cannot hold: " + at::toString(dtype));
}

void write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<std::pair<std::string, checkpoint::FileTensor>> places;
  for (const auto& [name, tensor] : tensors) {
    places.emplace_back(
        name, checkpoint::FileTensor{.dtype = safetensors_dtype(tensor.scalar_type(), name),
                                     .shape = tensor.sizes().vec()});
  }
  std::string content = checkpoint::make_header(places, metadata);
  for (const auto& [name, tensor] : tensors) {
    const Tensor host = tensor.contiguous();
    content.append(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  }
  write_file_atomically(file, content);
}

NamedTensors read_safetensors(const std::filesystem::path& file) {
  NamedTensors tensors;
  const checkpoint::FileTensors header = checkpoint::read_header(file);
  const checkpoint::InputFile in(file);
  for (const auto& [name, place] : header) {
    Tensor tensor = at::empty(place.shape, dtype_of(file, place.dtype));
    in.read(place.begin, static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes());
    tensors[name] = std::move(tensor);
  }
  return tensors;
}

}  // namespace assay::train
