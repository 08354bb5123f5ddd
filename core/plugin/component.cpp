// Manifests and option values as JSON, both ways.
#include "core/plugin/component.h"

#include <algorithm>
#include <cmath>

namespace assay {
namespace {

using nlohmann::json;

constexpr OptionType kTypes[] = {OptionType::boolean, OptionType::integer,  OptionType::real,
                                 OptionType::text,    OptionType::choice,   OptionType::path,
                                 OptionType::bytes,   OptionType::duration, OptionType::count,
                                 OptionType::list};
constexpr Affects kAffects[] = {Affects::numerics, Affects::memory, Affects::speed};

template <class Enum, size_t n>
Enum by_name(const Enum (&values)[n], const std::string& name) {
  for (const Enum value : values) {
    if (name == name_of(value)) return value;
  }
  throw Error("'" + name + "' is no word of a manifest");
}

json bound(double value) { return std::isinf(value) ? json() : json(value); }

double bound(const json& value, double otherwise) {
  return value.is_null() ? otherwise : value.get<double>();
}

json to_json(const OptionSpec& spec) {
  return {{"name", spec.name},
          {"type", name_of(spec.type)},
          {"default", spec.required ? json() : assay::to_json(spec.default_value)},
          {"required", spec.required},
          {"unit", spec.unit},
          {"low", bound(spec.range.low)},
          {"high", bound(spec.range.high)},
          {"choices", spec.choices},
          {"doc", spec.doc},
          {"aliases", spec.aliases},
          {"affects", name_of(spec.affects)}};
}

OptionSpec spec_from_json(const json& d) {
  OptionSpec spec;
  spec.name = d.at("name");
  spec.type = by_name(kTypes, d.at("type"));
  spec.required = d.at("required");
  spec.unit = d.at("unit");
  spec.range.low = bound(d.at("low"), spec.range.low);
  spec.range.high = bound(d.at("high"), spec.range.high);
  spec.choices = d.at("choices").get<std::vector<std::string>>();
  spec.doc = d.at("doc");
  spec.aliases = d.at("aliases").get<std::vector<std::string>>();
  spec.affects = by_name(kAffects, d.at("affects"));
  if (!spec.required) spec.default_value = option_value(spec, d.at("default"));
  return spec;
}

}  // namespace

const OptionSpec* Component::option(std::string_view wanted) const {
  for (const OptionSpec& spec : options) {
    if (spec.name == wanted) return &spec;
    if (std::find(spec.aliases.begin(), spec.aliases.end(), wanted) != spec.aliases.end()) {
      return &spec;
    }
  }
  return nullptr;
}

json to_json(const OptionValue& value) {
  return std::visit([](const auto& v) { return json(v); }, value);
}

OptionValue option_value(const OptionSpec& spec, const json& value) {
  OptionValue result;
  if (value.is_boolean()) result = value.get<bool>();
  if (value.is_number_integer()) result = value.get<int64_t>();
  if (value.is_number_float()) result = value.get<double>();
  if (value.is_string()) result = value.get<std::string>();
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const json& item : value)
      items.push_back(item.is_string() ? item.get<std::string>() : item.dump());
    result = std::move(items);
  }
  if (value.is_null() || value.is_object()) {
    throw Error("'" + spec.name + "' must be a plain value; got '" + value.dump() + "'");
  }
  if (spec.type == OptionType::real && value.is_number()) result = value.get<double>();
  check_option(spec, result);
  return result;
}

OptionValues option_values(const Component& component, const json& settings) {
  OptionValues values;
  for (const auto& [key, value] : settings.items()) {
    if (key == "name" || (key == "lr" && component.kind == Kind::optim)) continue;
    const OptionSpec* spec = component.option(key);
    if (!spec) unknown_option(key, component.options);
    values.emplace(spec->name, option_value(*spec, value));
  }
  return values;
}

json to_json(const Component& c) {
  json document = {{"kind", name_of(c.kind)},    {"name", c.name},
                   {"summary", c.summary},       {"reference", c.reference},
                   {"provides", c.provides},     {"needs", c.needs},
                   {"conflicts", json::array()}, {"rules", json::array()},
                   {"default_lr", json()},       {"dims", c.dims},
                   {"options", json::array()}};
  if (c.default_lr) document["default_lr"] = *c.default_lr;
  for (const Conflict& conflict : c.conflicts) {
    document["conflicts"].push_back({{"with", conflict.with}, {"reason", conflict.reason}});
  }
  for (const Rule& rule : c.rules) {
    document["rules"].push_back(
        {{"id", rule.id}, {"expression", rule.expression}, {"text", rule.text}});
  }
  for (const OptionSpec& spec : c.options) document["options"].push_back(to_json(spec));
  return document;
}

Component component_from_json(const json& d) {
  try {
    Component c;
    const std::string kind = d.at("kind");
    if (!kind_of(kind)) throw Error("'" + kind + "' is no kind of component");
    c.kind = *kind_of(kind);
    c.name = d.at("name");
    c.summary = d.at("summary");
    c.reference = d.at("reference");
    c.provides = d.at("provides").get<std::vector<std::string>>();
    c.needs = d.at("needs").get<std::vector<std::string>>();
    c.dims = d.at("dims").get<std::vector<std::string>>();
    if (!d.at("default_lr").is_null()) c.default_lr = d.at("default_lr").get<double>();
    for (const json& x : d.at("conflicts")) c.conflicts.push_back({x.at("with"), x.at("reason")});
    for (const json& x : d.at("rules")) {
      c.rules.push_back({x.at("id"), x.at("expression"), x.at("text")});
    }
    for (const json& x : d.at("options")) c.options.push_back(spec_from_json(x));
    return c;
  } catch (const json::exception& e) {
    throw Error(std::string("this is no manifest of assay: ") + e.what());
  }
}

}  // namespace assay
