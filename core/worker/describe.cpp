// Manifests from the registry, facts from components made with the options in question.
#include "core/worker/describe.h"

#include <string>

#include "assay/data.h"
#include "assay/model.h"
#include "assay/registry.h"
#include "core/base/diagnostic.h"
#include "core/base/files.h"
#include "core/plugin/component.h"
#include "core/sdk/loader.h"
#include "core/worker/document.h"

namespace assay::worker {
namespace {

using nlohmann::json;

Component as_component(const Registration& entry) {
  Component component;
  static_cast<Manifest&>(component) = entry.manifest;
  component.kind = entry.kind;
  component.options = entry.options;
  return component;
}

std::string with_hint(const std::string& text, const std::string& hint) {
  return hint.empty() ? text : text + "\nhint: " + hint;
}

/// What `call` gives, or its exception as {"error": text}.
template <class Call>
json guarded(Call call) {
  try {
    return call();
  } catch (const DiagnosticError& e) {
    const Diagnostic& d = e.diagnostics().front();
    return {{"error", with_hint(d.id + " " + d.text, d.hints.empty() ? "" : d.hints.front())}};
  } catch (const Error& e) {
    return {{"error", with_hint(e.what(), e.hint())}};
  } catch (const std::exception& e) {
    return {{"error", e.what()}};
  }
}

json parameters_of(const Model& model, int64_t& count) {
  json list = json::array();
  for (const ParameterSpec& spec : model.parameters()) {
    int64_t elements = 1;
    for (const int64_t size : spec.shape) elements *= size;
    count += elements;
    json axes = json::array();
    for (const AxisSpec& axis : spec.axes) axes.push_back(name_of(axis.axis));
    list.push_back(
        {{"name", spec.name}, {"shape", spec.shape}, {"axes", axes}, {"role", name_of(spec.role)}});
  }
  return list;
}

/// A weight that two blocks read, as a tied embedding and head do.
bool has_shared_weight(const std::vector<BlockSpec>& blocks) {
  std::map<int, int> uses;
  for (const BlockSpec& block : blocks) {
    for (const int weight : block.weights) {
      if (++uses[weight] > 1) return true;
    }
  }
  return false;
}

json facts_of(Model& model, const json& context) {
  model.bind({.data_vocabulary = context.value("vocab", int64_t{0})});
  json facts = json::object();
  for (const auto& [name, value] : model.facts()) facts[name] = value;
  int64_t count = 0;
  facts["parameters"] = parameters_of(model, count);
  facts["parameter_count"] = count;
  const std::vector<BlockSpec> blocks = model.blocks();
  facts["blocks"] = blocks.size();
  facts["tied"] = has_shared_weight(blocks);
  facts["vocab"] = model.vocabulary();
  facts["flops_per_token"] = model.flops_per_token(model.sequence_length());
  return facts;
}

json facts_of(const DataSource& data) {
  return {{"fingerprint", data.fingerprint()},
          {"vocabulary", data.vocabulary()},
          {"tokens", data.tokens(Split::train) + data.tokens(Split::validation)},
          {"train_tokens", data.tokens(Split::train)},
          {"validation_tokens", data.tokens(Split::validation)},
          {"bytes", data.bytes()}};
}

json facts_for(const json& request) {
  const std::string kind = request.at("kind"), name = request.at("name");
  const std::optional<Kind> parsed = kind_of(kind);
  const Registration* entry = parsed ? registry().find(*parsed, name) : nullptr;
  if (!entry) throw Error("no component " + kind + "/" + name + " in the described plugins");
  const OptionValues values =
      option_values(as_component(*entry), request.value("options", json::object()));
  if (entry->kind == Kind::model) {
    return facts_of(*registry().create<Model>(name, values),
                    request.value("context", json::object()));
  }
  if (entry->kind == Kind::data) return facts_of(*registry().create<DataSource>(name, values));
  throw Error(kind + "/" + name + " has no facts: only models and data sources have");
}

}  // namespace

json manifest_of(const std::string& plugin, const std::string& version) {
  json components = json::array();
  for (const Registration* entry : registry().entries()) {
    if (entry->plugin == plugin) components.push_back(to_json(as_component(*entry)));
  }
  return {{"schema", 1}, {"plugin", plugin}, {"version", version}, {"components", components}};
}

json describe(const json& request) {
  json manifests = json::object(), facts = json::array();
  for (const std::string file : request.at("files")) {
    manifests[file] = guarded([&] {
      const LoadedPlugin& plugin = load_plugin(file);
      return manifest_of(plugin.note.plugin, plugin.note.version);
    });
  }
  for (const json& one : request.value("facts", json::array())) {
    facts.push_back(guarded([&] { return facts_for(one); }));
  }
  return {{"manifests", manifests}, {"facts", facts}};
}

int describe_command(const std::filesystem::path& request_file) {
  print_document([&] { return describe(json::parse(read_file(request_file))); });
  shutdown_plugins();
  return 0;
}

}  // namespace assay::worker
