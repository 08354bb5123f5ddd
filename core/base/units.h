// Units: bytes, durations, counts and percent, exact or refused; and how figures are printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

/// Each reads the whole text or gives nothing: a bare non-zero number for bytes or a duration,
/// overflow and an inexact product (0.3B) are no value.
std::optional<int64_t> parse_bytes(std::string_view text);     ///< 0 512B 64KiB 1.5GiB 10MB
std::optional<int64_t> parse_duration(std::string_view text);  ///< ns: 250ms 30s 10m 2h 1h30m
std::optional<int64_t> parse_count(std::string_view text);     ///< 7 250k 10M 1G
std::optional<double> parse_percent(std::string_view text);    ///< 1% -> 0.01

/// Scalars as YAML spells them, by std::from_chars (never octal, never "yes").
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_real(std::string_view text);
std::optional<bool> parse_boolean(std::string_view text);  ///< true, false

std::string print_bytes(int64_t bytes);           ///< "512 B", "6.0 GiB"
std::string print_duration(int64_t nanoseconds);  ///< the shortest exact spelling: "10m"
std::string print_clock(double seconds);          ///< "00:42", "1:02:03"

}  // namespace assay
