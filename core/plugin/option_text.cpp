// Reading and printing of option values by their declared type.
#include "core/plugin/option_text.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/units.h"
#include "core/plugin/component.h"

namespace assay {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// "[a, b]" or "a,b"
std::vector<std::string> parse_list(std::string_view text) {
  text = trimmed(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  std::vector<std::string> items;
  while (!trimmed(text).empty()) {
    const size_t comma = text.find(',');
    items.emplace_back(trimmed(text.substr(0, comma)));
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return items;
}

/// The number if it was one; else the text itself, so that the refusal shows it.
template <class Number>
OptionValue or_text(const std::optional<Number>& number, std::string_view text) {
  if (number) return *number;
  return std::string(text);
}

/// The largest binary unit that divides, so that nothing is lost.
std::string exact_bytes(int64_t bytes) {
  constexpr std::array<std::pair<const char*, int64_t>, 3> units{
      {{"GiB", int64_t{1} << 30}, {"MiB", int64_t{1} << 20}, {"KiB", int64_t{1} << 10}}};
  if (bytes == 0) return "0";
  for (const auto& [name, factor] : units) {
    if (bytes % factor == 0) return std::to_string(bytes / factor) + name;
  }
  return std::to_string(bytes) + "B";
}

/// Quoted where YAML would read something else than this text.
std::string yaml_text(const std::string& text) {
  const bool plain = !text.empty() &&
                     text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_-./") == std::string::npos &&
                     text[0] != '-';
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

std::string number(double value) { return nlohmann::json(value).dump(); }

std::string bound_text(double value) {
  const bool whole = value == std::floor(value) && std::fabs(value) < 1e15;
  return whole ? std::to_string(static_cast<int64_t>(value)) : number(value);
}

}  // namespace

OptionValue parse_option(const OptionSpec& spec, std::string_view text) {
  OptionValue value = std::string(text);
  switch (spec.type) {
    case OptionType::boolean:
      value = or_text(parse_boolean(text), text);
      break;
    case OptionType::integer:
      value = or_text(parse_integer(text), text);
      break;
    case OptionType::real:
      value = or_text(parse_real(text), text);
      break;
    case OptionType::bytes:
      value = or_text(parse_bytes(text), text);
      break;
    case OptionType::duration:
      value = or_text(parse_duration(text), text);
      break;
    case OptionType::count:
      value = or_text(parse_count(text), text);
      break;
    case OptionType::list:
      value = parse_list(text);
      break;
    case OptionType::text:
    case OptionType::choice:
    case OptionType::path:
      break;
  }
  check_option(spec, value);
  return value;
}

std::string print_option(const OptionSpec& spec, const OptionValue& value) {
  if (spec.type == OptionType::bytes) return exact_bytes(std::get<int64_t>(value));
  if (spec.type == OptionType::duration) return print_duration(std::get<int64_t>(value));
  if (const auto* text = std::get_if<std::string>(&value)) return yaml_text(*text);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    std::string items;
    for (const std::string& item : *list) items += (items.empty() ? "" : ", ") + yaml_text(item);
    return "[" + items + "]";
  }
  return to_json(value).dump();
}

std::string allowed_values(const OptionSpec& spec) {
  std::string words;
  for (const std::string& choice : spec.choices) words += (words.empty() ? "" : "|") + choice;
  if (!words.empty()) return words;
  const Range& r = spec.range;
  if (std::isinf(r.low) && std::isinf(r.high)) return "";
  if (std::isinf(r.high)) return ">= " + bound_text(r.low);
  if (std::isinf(r.low)) return "<= " + bound_text(r.high);
  return "[" + bound_text(r.low) + ", " + bound_text(r.high) + "]";
}

}  // namespace assay
