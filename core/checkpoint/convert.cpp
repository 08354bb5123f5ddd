// Weights only: slots of optimizer state mean nothing without the optimizer.
#include "core/checkpoint/convert.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "assay/error.h"
#include "core/checkpoint/file.h"
#include "core/checkpoint/safetensors.h"

namespace assay::checkpoint {
namespace {

constexpr unsigned kLowHalf = 16;  // bits of a float that bfloat16 lacks

float widen(uint16_t bf16) { return std::bit_cast<float>(uint32_t{bf16} << kLowHalf); }

/// To nearest, ties to even.
uint16_t narrow(float value) {
  if (std::isnan(value)) return 0x7FC0;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t tie_to_even = (bits >> kLowHalf) & 1;
  return static_cast<uint16_t>((bits + 0x7FFF + tie_to_even) >> kLowHalf);
}

template <class T>
T load(const std::vector<std::byte>& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

double value_at(const std::vector<std::byte>& bytes, const std::string& dtype, size_t index) {
  if (dtype == "F64") return load<double>(bytes, index);
  if (dtype == "F32") return load<float>(bytes, index);
  return widen(load<uint16_t>(bytes, index));
}

bool is_known(const std::string& dtype) {
  return dtype == "F64" || dtype == "F32" || dtype == "BF16";
}

std::vector<std::byte> cast(std::vector<std::byte> bytes, const std::string& from,
                            const std::string& to) {
  if (from == to) return bytes;
  const size_t count = bytes.size() / element_bytes(from);
  std::vector<std::byte> out;
  out.reserve(count * element_bytes(to));
  for (size_t i = 0; i < count; ++i) {
    const double value = value_at(bytes, from, i);
    if (to == "F64") {
      append(out, value);
    } else if (to == "F32") {
      append(out, static_cast<float>(value));
    } else {
      append(out, narrow(static_cast<float>(value)));
    }
  }
  return out;
}

using Places = std::vector<std::pair<std::string, FileTensor>>;

Places places_of(const Manifest& manifest, const std::string& dtype) {
  if (!dtype.empty() && !is_known(dtype)) {
    throw Error("no conversion to dtype '" + dtype + "'", "one of: F64, F32, BF16");
  }
  Places places;
  for (const auto& [name, tensor] : manifest.tensors) {
    if (tensor.kind != TensorKind::weight) continue;
    if (!dtype.empty() && !is_known(tensor.dtype)) {
      throw Error("'" + name + "' is " + tensor.dtype + ": no conversion to " + dtype,
                  "leave --dtype out");
    }
    places.emplace_back(
        name, FileTensor{.dtype = dtype.empty() ? tensor.dtype : dtype, .shape = tensor.shape});
  }
  return places;
}

Converted write(Reader& reader, const std::filesystem::path& out, const std::string& dtype) {
  Places places = places_of(reader.manifest(), dtype);
  Converted done;
  OutputFile file(out);
  file.write(make_header(places, {{"format", "pt"}}));
  for (const auto& [name, place] : places) {
    const TensorEntry& tensor = reader.manifest().tensors.at(name);
    const Region all = whole(tensor.shape);
    std::vector<std::byte> bytes(static_cast<size_t>(volume(all)) * element_bytes(tensor.dtype));
    reader.read(name, all, bytes.data());
    bytes = cast(std::move(bytes), tensor.dtype, place.dtype);
    file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    done.bytes += static_cast<int64_t>(bytes.size());
    ++done.tensors;
  }
  file.sync();
  return done;
}

}  // namespace

Converted convert(Reader& reader, const std::filesystem::path& out, const std::string& dtype) {
  const std::filesystem::path temporary = out.string() + ".tmp";
  try {
    const Converted done = write(reader, temporary, dtype);
    std::filesystem::rename(temporary, out);
    sync_folder(out.has_parent_path() ? out.parent_path() : ".");
    return done;
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw;
  }
}

}  // namespace assay::checkpoint
