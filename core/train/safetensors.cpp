// The format's header and its checks; data is copied once.
#include "core/train/safetensors.h"

#include <ATen/ops/empty.h>

#include <array>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "assay/error.h"
#include "core/base/files.h"

namespace assay::train {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLargestHeader = 100'000'000;  // the reference reader's own limit

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

const char* name_of_dtype(at::ScalarType dtype, const std::string& tensor) {
  for (const auto& [type, name] : kDtypes) {
    if (type == dtype) return name;
  }
  throw Error("tensor '" + tensor +
              "' has a dtype that safetensors cannot hold: " + at::toString(dtype));
}

[[noreturn]] void damaged(const std::filesystem::path& file, const std::string& what) {
  throw Error(file.string() + " is no whole safetensors file: " + what,
              "export it again, or point to another file");
}

at::ScalarType dtype_of(const std::filesystem::path& file, const std::string& name) {
  for (const auto& [type, text] : kDtypes) {
    if (name == text) return type;
  }
  damaged(file, "unknown dtype '" + name + "'");
}

Tensor read_tensor(const std::filesystem::path& file, const std::string& name, const json& entry,
                   std::string_view data) {
  const auto shape = entry.at("shape").get<Shape>();
  const auto [begin, end] = entry.at("data_offsets").get<std::pair<uint64_t, uint64_t>>();
  if (begin > end || end > data.size()) damaged(file, "'" + name + "' lies outside of the data");
  Tensor tensor = at::empty(shape, dtype_of(file, entry.at("dtype")));
  if (tensor.nbytes() != end - begin)
    damaged(file, "the size of '" + name + "' is not its shape's");
  std::memcpy(tensor.mutable_data_ptr(), data.data() + begin, end - begin);
  return tensor;
}

std::string header_text(const NamedTensors& tensors,
                        const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const uint64_t end = offset + tensor.nbytes();
    header[name] = {{"dtype", name_of_dtype(tensor.scalar_type(), name)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');  // aligned data
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = header_text(tensors, metadata);
  const uint64_t length = header.size();
  std::string content(reinterpret_cast<const char*>(&length), kLengthBytes);
  content += header;
  for (const auto& [name, tensor] : tensors) {
    const Tensor host = tensor.contiguous();
    content.append(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  }
  write_file_atomically(file, content);
}

NamedTensors read_safetensors(const std::filesystem::path& file) {
  const std::string content = read_file(file);
  uint64_t length = 0;
  if (content.size() < kLengthBytes)
    damaged(file, "it has " + std::to_string(content.size()) + " bytes");
  std::memcpy(&length, content.data(), kLengthBytes);
  if (length > kLargestHeader || length > content.size() - kLengthBytes) {
    damaged(file, "its header length is " + std::to_string(length));
  }
  const std::string_view text(content.data() + kLengthBytes, length);
  const std::string_view data(content.data() + kLengthBytes + length,
                              content.size() - kLengthBytes - length);
  NamedTensors tensors;
  try {
    const json header = json::parse(text);
    for (const auto& [name, entry] : header.items()) {
      if (name != "__metadata__") tensors[name] = read_tensor(file, name, entry, data);
    }
  } catch (const json::exception& error) {
    damaged(file, std::string("its header does not parse: ") + error.what());
  }
  return tensors;
}

}  // namespace assay::train
