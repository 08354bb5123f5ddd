// The header and its checks, for whole files and for shards alike.
#include "core/checkpoint/safetensors.h"

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "core/checkpoint/file.h"

namespace assay::checkpoint {
namespace {

using nlohmann::json;

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLargestHeader = 100'000'000;  // the reference reader's own limit

constexpr std::array<std::pair<std::string_view, size_t>, 14> kElementBytes{{
    {"F64", 8},
    {"F32", 4},
    {"F16", 2},
    {"BF16", 2},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"I64", 8},
    {"I32", 4},
    {"I16", 2},
    {"I8", 1},
    {"U64", 8},
    {"U32", 4},
    {"U8", 1},
    {"BOOL", 1},
}};

[[noreturn]] void damaged(const std::filesystem::path& file, const std::string& what) {
  throw Error(file.string() + " is no whole safetensors file: " + what,
              "export it again, or point to another file");
}

FileTensor tensor_of(const std::filesystem::path& file, const std::string& name, const json& entry,
                     uint64_t data_begin, uint64_t data_bytes) {
  FileTensor tensor{.dtype = entry.at("dtype"), .shape = entry.at("shape").get<Shape>()};
  const auto [begin, end] = entry.at("data_offsets").get<std::pair<uint64_t, uint64_t>>();
  if (begin > end || end > data_bytes) damaged(file, "'" + name + "' lies outside of the data");
  const size_t width = element_bytes(tensor.dtype);
  if (width == 0) damaged(file, "unknown dtype '" + tensor.dtype + "'");
  const auto elements = static_cast<uint64_t>(volume(whole(tensor.shape)));
  if (elements != (end - begin) / width || (end - begin) % width != 0) {
    damaged(file, "the size of '" + name + "' is not its shape's");
  }
  tensor.begin = data_begin + begin;
  tensor.end = data_begin + end;
  return tensor;
}

}  // namespace

size_t element_bytes(std::string_view dtype) {
  for (const auto& [name, bytes] : kElementBytes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

std::string make_header(std::vector<std::pair<std::string, FileTensor>>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (auto& [name, tensor] : tensors) {
    const auto elements = static_cast<uint64_t>(volume(whole(tensor.shape)));
    tensor.begin = offset;
    tensor.end = offset + elements * element_bytes(tensor.dtype);
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {tensor.begin, tensor.end}}};
    offset = tensor.end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  const uint64_t length = text.size();
  for (auto& [name, tensor] : tensors) {
    tensor.begin += kLengthBytes + length;
    tensor.end += kLengthBytes + length;
  }
  return std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + text;
}

FileTensors read_header(const std::filesystem::path& file) {
  const InputFile in(file);
  uint64_t length = 0;
  if (in.size() < kLengthBytes) damaged(file, "it has " + std::to_string(in.size()) + " bytes");
  in.read(0, reinterpret_cast<std::byte*>(&length), kLengthBytes);
  if (length > kLargestHeader || length > in.size() - kLengthBytes) {
    damaged(file, "its header length is " + std::to_string(length));
  }
  std::string text(length, '\0');
  in.read(kLengthBytes, reinterpret_cast<std::byte*>(text.data()), length);
  const uint64_t data_begin = kLengthBytes + length;
  FileTensors tensors;
  try {
    const json header = json::parse(text);
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      tensors[name] = tensor_of(file, name, entry, data_begin, in.size() - data_begin);
    }
  } catch (const json::exception& error) {
    damaged(file, std::string("its header does not parse: ") + error.what());
  }
  return tensors;
}

}  // namespace assay::checkpoint
