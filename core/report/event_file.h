// TensorBoard event files: scalars of one run in the record format of TensorFlow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::report {

/// CRC-32C turned and shifted, so that a checksum of data that holds checksums stays strong:
/// ((crc >> 15) | (crc << 17)) + 0xa282ead8.
uint32_t masked_crc(std::string_view content);

/// A file as bytes. It starts with the version event; each record is
///
///   length (u64 LE), masked CRC of it (u32 LE), event, masked CRC of the event (u32 LE)
///
/// and an event the protocol buffer `Event {double wall_time = 1; int64 step = 2;
/// string file_version = 3; Summary summary = 5;}`, `Summary {repeated Value value = 1;}`,
/// `Value {string tag = 1; float simple_value = 2;}`.
class EventFile {
 public:
  explicit EventFile(double wall_time_s);

  /// Values are float32 there: read back, they equal the float, not the double.
  void add(double wall_time_s, int64_t step, std::string_view tag, double value);

  const std::string& bytes() const { return bytes_; }

 private:
  void add_record(std::string_view event);

  std::string bytes_;
};

}  // namespace assay::report
