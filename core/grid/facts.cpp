// Fetching and looking up of facts.
#include "core/grid/facts.h"

#include "assay/error.h"

namespace assay::grid {
namespace {

Value scalar(const nlohmann::json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array()) return {};
  std::vector<Value> list;
  for (const nlohmann::json& item : json) list.push_back(scalar(item));
  return list;
}

/// Of all parameters, or of the matrices that linear layers multiply with.
Value names_of_parameters(const nlohmann::json& model, bool matrices) {
  if (!model.is_object() || !model.contains("parameters")) return {};
  std::vector<Value> names;
  for (const nlohmann::json& p : model.at("parameters")) {
    const bool matrix = p.at("role") == "matrix" && p.at("shape").size() == 2;
    if (matrix || !matrices) names.emplace_back(p.at("name").get<std::string>());
  }
  return names;
}

std::string text_of(const FactsRequest& request) {
  return std::string(name_of(request.kind)) + "/" + request.name + " " + request.options.dump() +
         " " + request.context.dump();
}

/// What tells two sections of one kind apart without building their JSON.
std::string section_text(Kind kind, const Layout& layout, const Values& values,
                         const Component* component) {
  std::string text = std::string(name_of(kind)) + "/" + component->name;
  for (size_t i = 0; i < layout.entries.size(); ++i) {
    if (layout.entries[i].component != component) continue;
    text += '\n';
    text += values[i]->json;
  }
  return text;
}

const Component* component_of(Kind kind, const Layout& layout) {
  for (const Component* component : layout.chosen) {
    if (component && component->kind == kind) return component;
  }
  ASSAY_CHECK(false, "a layout without a " + std::string(name_of(kind)));
  return nullptr;
}

}  // namespace

const Value& Facts::value(const std::string& name) {
  const auto [found, fresh] = values.emplace(name, Value());
  if (!fresh) return found->second;
  std::string pointer = "/" + name;
  for (char& c : pointer) {
    if (c == '.') c = '/';
  }
  const nlohmann::json::json_pointer at(pointer);
  if (json.is_object() && json.contains(at)) found->second = scalar(json.at(at));
  if (name == "parameter_names") found->second = names_of_parameters(json, false);
  if (name == "matrix_names") found->second = names_of_parameters(json, true);
  return found->second;
}

FactsRequest FactsBook::request(Kind kind, const Layout& layout, const Values& values) const {
  const Component* component = component_of(kind, layout);
  FactsRequest request{.kind = kind, .name = component->name};
  for (size_t i = 0; i < layout.entries.size(); ++i) {
    const Entry& entry = layout.entries[i];
    if (entry.component != component || !entry.spec) continue;
    request.options[entry.spec->name] = nlohmann::json::parse(values[i]->json);
  }
  return request;
}

FactsRequest FactsBook::model_request(const Layout& layout, const Values& values) {
  FactsRequest model = request(Kind::model, layout, values);
  const Facts& source = data(layout, values);
  if (!source.error) model.context = {{"vocab", source.json.value("vocabulary", int64_t{0})}};
  return model;
}

Facts& FactsBook::get(FactsRequest request) {
  auto& facts = known_[text_of(request)];
  if (facts) return *facts;
  facts = std::make_unique<Facts>();
  try {
    facts->json = components_.facts(request);
  } catch (const Error& error) {
    facts->error = error.what();
    facts->hint = error.hint();
  }
  return *facts;
}

Facts& FactsBook::data(const Layout& layout, const Values& values) {
  const Component* component = component_of(Kind::data, layout);
  Facts*& memo = by_section_[section_text(Kind::data, layout, values, component)];
  if (!memo) memo = &get(request(Kind::data, layout, values));
  return *memo;
}

Facts& FactsBook::model(const Layout& layout, const Values& values) {
  const std::string text =
      section_text(Kind::model, layout, values, component_of(Kind::model, layout)) + "\n" +
      section_text(Kind::data, layout, values, component_of(Kind::data, layout));
  const auto found = by_section_.find(text);
  if (found != by_section_.end()) return *found->second;
  Facts& facts = get(model_request(layout, values));
  by_section_[text] = &facts;
  return facts;
}

void FactsBook::prepare(const std::vector<std::pair<const Layout*, const Values*>>& cells) {
  for (const Kind kind : {Kind::data, Kind::model}) {
    std::map<std::string, FactsRequest> requests;
    std::unordered_map<std::string, bool> seen;
    for (const auto& [layout, values] : cells) {
      std::string section = section_text(kind, *layout, *values, component_of(kind, *layout));
      if (kind == Kind::model) {
        section += section_text(Kind::data, *layout, *values, component_of(Kind::data, *layout));
      }
      if (!seen.emplace(std::move(section), true).second) continue;
      FactsRequest request = kind == Kind::data ? this->request(kind, *layout, *values)
                                                : model_request(*layout, *values);
      requests.emplace(text_of(request), std::move(request));
    }
    std::vector<FactsRequest> list;
    for (auto& [text, request] : requests) list.push_back(std::move(request));
    components_.prepare_facts(list);
  }
}

}  // namespace assay::grid
