// Records and the few protocol buffer fields that scalars need.
#include "core/report/event_file.h"

#include <bit>

#include "core/base/files.h"

namespace assay::report {
namespace {

constexpr uint32_t kMaskDelta = 0xa282ead8;
constexpr const char* kVersion = "brain.Event:2";
enum WireType : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string text;
  for (size_t i = 0; i < sizeof value; ++i) {
    text += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }
  return text;
}

std::string base128(uint64_t value) {
  std::string text;
  while (value >= 0x80) {
    text += static_cast<char>(static_cast<unsigned char>(value | 0x80));
    value >>= 7;
  }
  return text + static_cast<char>(value);
}

std::string key(uint32_t field, WireType type) { return base128(field << 3 | type); }

std::string text_field(uint32_t field, std::string_view content) {
  return key(field, bytes) + base128(content.size()) + std::string(content);
}

std::string double_field(uint32_t field, double value) {
  return key(field, fixed64) + little_endian(std::bit_cast<uint64_t>(value));
}

std::string float_field(uint32_t field, float value) {
  return key(field, fixed32) + little_endian(std::bit_cast<uint32_t>(value));
}

std::string int_field(uint32_t field, int64_t value) {
  return key(field, varint) + base128(static_cast<uint64_t>(value));
}

}  // namespace

uint32_t masked_crc(std::string_view content) {
  return std::rotr(crc32c(content), 15) + kMaskDelta;
}

EventFile::EventFile(double wall_time_s) {
  add_record(double_field(1, wall_time_s) + text_field(3, kVersion));
}

void EventFile::add(double wall_time_s, int64_t step, std::string_view tag, double value) {
  const std::string scalar = text_field(1, tag) + float_field(2, static_cast<float>(value));
  add_record(double_field(1, wall_time_s) + int_field(2, step) +
             text_field(5, text_field(1, scalar)));
}

void EventFile::add_record(std::string_view event) {
  const std::string length = little_endian(uint64_t{event.size()});
  bytes_ += length + little_endian(masked_crc(length));
  bytes_ += event;
  bytes_ += little_endian(masked_crc(event));
}

}  // namespace assay::report
