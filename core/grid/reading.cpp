// Typed reading of scalars and lists.
#include "core/grid/reading.h"

#include <filesystem>

#include "core/base/units.h"

namespace assay::grid {
namespace {

/// G07 when a number lacks its unit, else nothing.
std::optional<std::string> missing_unit(const Node& node, const OptionSpec& spec,
                                        const std::string& key) {
  if (!parse_real(node.text)) return std::nullopt;
  const bool size = spec.type == OptionType::bytes;
  if (!size && spec.type != OptionType::duration) return std::nullopt;
  return "'" + key + "' is a " + (size ? "size" : "time") + " and needs a unit: '" + node.text +
         "'. Did you mean " + node.text + (size ? "MiB?" : "s?");
}

std::optional<OptionValue> number_of(const Node& node, const OptionSpec& spec) {
  const auto wrap = [](const auto& value) -> std::optional<OptionValue> {
    if (!value) return std::nullopt;
    return OptionValue(*value);
  };
  switch (spec.type) {
    case OptionType::boolean:
      return wrap(parse_boolean(node.text));
    case OptionType::integer:
      return wrap(parse_integer(node.text));
    case OptionType::real: {
      const auto real = parse_real(node.text);
      return wrap(real ? real : parse_percent(node.text));
    }
    case OptionType::bytes:
      return wrap(parse_bytes(node.text));
    case OptionType::duration:
      return wrap(parse_duration(node.text));
    case OptionType::count:
      return wrap(parse_count(node.text));
    default:
      return std::nullopt;
  }
}

bool is_unit_type(OptionType type) {
  return type == OptionType::bytes || type == OptionType::duration || type == OptionType::count;
}

bool is_text_type(OptionType type) {
  return type == OptionType::text || type == OptionType::choice || type == OptionType::path;
}

std::string absolute_path(const Node& node) {
  namespace fs = std::filesystem;
  if (node.text.empty()) return {};
  const fs::path folder = node.mark.source ? node.mark.source->folder : fs::path();
  return fs::absolute(folder / node.text).lexically_normal().string();
}

std::optional<OptionValue> list_of(const Node& node) {
  std::vector<std::string> items;
  for (const Node& item : node.items) {
    if (!item.is_scalar()) return std::nullopt;
    items.push_back(item.text);
  }
  return items;
}

std::optional<OptionValue> convert(const Node& node, const OptionSpec& spec) {
  if (spec.type == OptionType::list) {
    return node.is_sequence() ? list_of(node) : std::nullopt;
  }
  if (!node.is_scalar()) return std::nullopt;
  if (spec.type == OptionType::path) return absolute_path(node);
  if (is_text_type(spec.type)) return node.text;
  if (node.quoted && !is_unit_type(spec.type)) return std::nullopt;  // '64' is text
  return number_of(node, spec);
}

std::string shown(const Node& node) {
  if (node.is_sequence()) return "[" + describe(node) + "]";
  return node.is_scalar() && node.quoted ? "the text " + node.text : describe(node);
}

}  // namespace

std::optional<std::string> check_value(const OptionSpec& spec, const std::string& key,
                                       const OptionValue& value) {
  OptionSpec named = spec;
  named.name = key;
  try {
    check_option(named, value);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

std::optional<OptionValue> read_value(const Node& node, const OptionSpec& spec,
                                      const std::string& key, Findings& findings) {
  const bool unit = is_unit_type(spec.type);
  const std::string id = unit ? "G07" : spec.type == OptionType::choice ? "G14" : "G15";
  const Mark mark = node.mark;
  const auto fail = [&](const std::string& error_id, const std::string& text) {
    Diagnostic& d = findings.error(error_id, mark, text);
    if (node.alias) d.details = {"used through the alias at " + node.alias->position()};
    return std::nullopt;
  };
  const std::optional<OptionValue> value = convert(node, spec);
  if (!value) {
    if (const auto text = missing_unit(node, spec, key)) return fail("G07", *text);
    // A value that has no reading is described by the check that it fails: wrong type.
    const OptionValue shape = spec.type == OptionType::list || is_text_type(spec.type)
                                  ? OptionValue(std::vector<std::string>{shown(node)})
                                  : OptionValue(shown(node));
    const OptionValue text = spec.type == OptionType::list ? OptionValue(shown(node)) : shape;
    return fail(id, *check_value(spec, key, text));
  }
  if (const auto text = check_value(spec, key, *value)) {
    return fail(spec.type == OptionType::choice ? "G14" : "G15", *text);
  }
  return value;
}

}  // namespace assay::grid
