// Option checks and names: the texts of G14 and G15, without place and without a key's prefix.
#include "assay/options.h"

#include <cmath>
#include <cstdio>

#include "core/base/nearest.h"

namespace assay {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// The shortest of %g that reads back as the same number.
std::string print_number(double value) {
  char text[32];
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    std::snprintf(text, sizeof text, "%.0f", value);
    return text;
  }
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  return text;
}

std::string print_value(const OptionValue& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&value)) return print_number(*d);
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  return "[" + joined(std::get<std::vector<std::string>>(value)) + "]";
}

const char* kind_words(OptionType type) {
  switch (type) {
    case OptionType::boolean:
      return "true or false";
    case OptionType::integer:
      return "a whole number";
    case OptionType::real:
      return "a number";
    case OptionType::text:
      return "text";
    case OptionType::choice:
      return "one of its choices";
    case OptionType::path:
      return "a path";
    case OptionType::bytes:
      return "a size with a unit, such as 64MiB";
    case OptionType::duration:
      return "a time with a unit, such as 30s";
    case OptionType::count:
      return "a whole number, such as 250k";
    case OptionType::list:
      return "a list of texts";
  }
  return "";
}

bool has_type(OptionType type, const OptionValue& value) {
  switch (type) {
    case OptionType::boolean:
      return std::holds_alternative<bool>(value);
    case OptionType::integer:
    case OptionType::bytes:
    case OptionType::duration:
    case OptionType::count:
      return std::holds_alternative<int64_t>(value);
    case OptionType::real:
      return std::holds_alternative<double>(value) || std::holds_alternative<int64_t>(value);
    case OptionType::text:
    case OptionType::choice:
    case OptionType::path:
      return std::holds_alternative<std::string>(value);
    case OptionType::list:
      return std::holds_alternative<std::vector<std::string>>(value);
  }
  return false;
}

/// "in [0, 10]", ">= 1", "<= 5"; empty without bounds.
std::string range_words(const Range& range) {
  if (std::isinf(range.low) && std::isinf(range.high)) return {};
  if (std::isinf(range.high)) return ">= " + print_number(range.low);
  if (std::isinf(range.low)) return "<= " + print_number(range.high);
  return "in [" + print_number(range.low) + ", " + print_number(range.high) + "]";
}

[[noreturn]] void refuse(const OptionSpec& spec, const OptionValue& value,
                         const std::string& allowed, const std::string& suggestion = {}) {
  throw Error("'" + spec.name + "' must be " + allowed + "; got '" + print_value(value) + "'" +
              suggestion);
}

void check_choice(const OptionSpec& spec, const OptionValue& value) {
  const std::string& word = std::get<std::string>(value);
  for (const std::string& choice : spec.choices) {
    if (choice == word) return;
  }
  const std::vector<std::string> near = nearest(word, spec.choices);
  refuse(spec, value, "one of " + joined(spec.choices),
         near.empty() ? "" : ". Did you mean '" + near[0] + "'?");
}

void check_range(const OptionSpec& spec, const OptionValue& value) {
  const double number = std::holds_alternative<double>(value)
                            ? std::get<double>(value)
                            : static_cast<double>(std::get<int64_t>(value));
  if (number >= spec.range.low && number <= spec.range.high) return;
  const std::string range = range_words(spec.range);
  if (range.empty()) refuse(spec, value, "a finite number");  // NaN is in no interval
  refuse(spec, value, spec.type == OptionType::integer ? "a whole number " + range : range);
}

}  // namespace

const char* name_of(OptionType type) {
  switch (type) {
    case OptionType::boolean:
      return "bool";
    case OptionType::integer:
      return "int";
    case OptionType::real:
      return "float";
    case OptionType::text:
      return "text";
    case OptionType::choice:
      return "enum";
    case OptionType::path:
      return "path";
    case OptionType::bytes:
      return "bytes";
    case OptionType::duration:
      return "duration";
    case OptionType::count:
      return "count";
    case OptionType::list:
      return "list";
  }
  return "";
}

const char* name_of(Affects affects) {
  switch (affects) {
    case Affects::numerics:
      return "numerics";
    case Affects::memory:
      return "memory";
    case Affects::speed:
      return "speed";
  }
  return "";
}

void check_option(const OptionSpec& spec, const OptionValue& value) {
  if (!has_type(spec.type, value)) {
    const std::string range = spec.type == OptionType::integer || spec.type == OptionType::real
                                  ? range_words(spec.range)
                                  : std::string();
    refuse(spec, value,
           spec.type == OptionType::choice
               ? "one of " + joined(spec.choices)
               : kind_words(spec.type) + std::string(range.empty() ? "" : " ") + range);
  }
  if (spec.type == OptionType::choice) check_choice(spec, value);
  if (std::holds_alternative<double>(value) || std::holds_alternative<int64_t>(value)) {
    check_range(spec, value);
  }
}

void unknown_option(const std::string& name, const std::vector<OptionSpec>& specs) {
  std::vector<std::string> names;
  for (const OptionSpec& spec : specs) names.push_back(spec.name);
  const std::vector<std::string> near = nearest(name, names);
  throw Error("unknown option '" + name + "'",
              near.empty() ? "its options: " + joined(names) : did_you_mean(near));
}

}  // namespace assay
