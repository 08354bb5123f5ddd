// Notes first, manifests on the first question, facts on demand; whatever is known twice is asked
// once.
#include "core/plugin/catalogue.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/nearest.h"
#include "core/plugin/discovery.h"
#include "core/plugin/facts_cache.h"

namespace assay {
namespace {

using nlohmann::json;

Diagnostic error(const char* id, const std::string& place, const std::string& text,
                 const std::string& hint = {}) {
  Diagnostic d;
  d.id = id;
  d.place = place;
  d.text = text;
  if (!hint.empty()) d.hints = {hint};
  return d;
}

std::string id_of(Kind kind, std::string_view name) {
  return std::string(name_of(kind)) + "/" + std::string(name);
}

bool shares(const std::vector<std::string>& a, const std::vector<std::string>& b,
            std::string* which) {
  for (const std::string& word : a) {
    if (std::find(b.begin(), b.end(), word) == b.end()) continue;
    *which = word;
    return true;
  }
  return false;
}

/// "P06 text" or a plain text, as the describe protocol carries errors.
Diagnostic carried(const std::string& message, const PluginFile& file) {
  const size_t hint = message.find("\nhint: ");
  const std::string text = message.substr(0, hint);
  const bool has_id = text.size() > 4 && text[0] == 'P' && text[3] == ' ';
  return error(
      has_id ? text.substr(0, 3).c_str() : "P06", file.place,
      has_id ? text.substr(4) : "plugin '" + file.note->plugin + "' does not load: " + text,
      hint == std::string::npos ? "" : message.substr(hint + 7));
}

json as_request(const FactsRequest& request) {
  return {{"kind", name_of(request.kind)},
          {"name", request.name},
          {"options", request.options},
          {"context", request.context}};
}

}  // namespace

Describer::~Describer() = default;

struct Catalogue::State {
  std::vector<std::unique_ptr<PluginFile>> files;
  std::shared_ptr<Describer> describer;
  bool described = false;
  std::map<const PluginFile*, Diagnostic> failures;  ///< accepted files that do not load
  std::vector<std::unique_ptr<Component>> components;
  std::map<std::string, const Component*> found;  ///< answers of find()
  std::map<std::string, json> facts;              ///< by cache key; {"error": text} for a refusal

  /// Files whose note names the component.
  std::vector<const PluginFile*> owners(const std::string& id) const;
  void describe_all();
  json ask(const json& request) const;
  std::map<const PluginFile*, json> describe(const std::vector<const PluginFile*>& unknown) const;
  void take(const PluginFile& file, const json& manifest);
  void check_unique(const std::string& id, const PluginFile& file,
                    const std::vector<const PluginFile*>& owners) const;
};

std::vector<const PluginFile*> Catalogue::State::owners(const std::string& id) const {
  std::vector<const PluginFile*> found;
  for (const auto& file : files) {
    if (!file->note) continue;
    const auto& ids = file->note->components;
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) found.push_back(file.get());
  }
  return found;
}

json Catalogue::State::ask(const json& request) const {
  if (!describer) throw Error("plugins cannot be described here: no worker was given");
  return describer->describe(request);
}

/// Manifests of files that no cache knows: all in one process; if that dies, one process each, so
/// that the culprit is known by name.
std::map<const PluginFile*, json> Catalogue::State::describe(
    const std::vector<const PluginFile*>& unknown) const {
  std::map<const PluginFile*, json> manifests;
  const auto ask_for = [&](const std::vector<const PluginFile*>& some) {
    json paths = json::array();
    for (const PluginFile* file : some) paths.push_back(file->path.string());
    const json answer = ask({{"files", paths}, {"facts", json::array()}});
    for (const PluginFile* file : some) {
      manifests[file] = answer.at("manifests").at(file->path.string());
    }
  };
  try {
    if (!unknown.empty()) ask_for(unknown);
  } catch (const std::exception&) {
    for (const PluginFile* file : unknown) {
      try {
        ask_for({file});
      } catch (const Error& e) {
        manifests[file] = {
            {"error", std::string(e.what()) + (e.hint().empty() ? "" : "\nhint: " + e.hint())}};
      } catch (const std::exception& e) {
        manifests[file] = {{"error", e.what()}};
      }
    }
  }
  return manifests;
}

void Catalogue::State::take(const PluginFile& file, const json& manifest) {
  if (manifest.contains("error")) {
    failures.emplace(&file, carried(manifest.at("error"), file));
    return;
  }
  for (const json& entry : manifest.at("components")) {
    auto component = std::make_unique<Component>(component_from_json(entry));
    component->file = &file;
    components.push_back(std::move(component));
  }
}

void Catalogue::State::describe_all() {
  if (described) return;
  described = true;
  std::vector<const PluginFile*> unknown;
  for (const auto& file : files) {
    if (!file->accepted()) continue;
    if (const auto known = cache_get("manifests", manifest_key(*file))) {
      take(*file, *known);
    } else {
      unknown.push_back(file.get());
    }
  }
  for (const auto& [file, manifest] : describe(unknown)) {
    take(*file, manifest);
    if (!manifest.contains("error")) cache_put("manifests", manifest_key(*file), manifest);
  }
}

void Catalogue::State::check_unique(const std::string& id, const PluginFile& file,
                                    const std::vector<const PluginFile*>& owners) const {
  for (const PluginFile* other : owners) {
    if (other == &file || !other->accepted()) continue;
    throw DiagnosticError(
        error("P02", file.place,
              id + " (" + file.note->version + ") is also defined by " + other->place + " (" +
                  other->note->version + ")",
              "rename one component, or take one folder out of ASSAY_PLUGIN_PATH"));
  }
  for (const auto& other : files) {
    if (other.get() == &file || !other->accepted()) continue;
    if (other->note->plugin == file.note->plugin) {
      throw DiagnosticError(
          error("P02", file.place,
                "plugin '" + file.note->plugin + "' is also the name of " + other->place,
                "rename one, or take one folder out of ASSAY_PLUGIN_PATH"));
    }
    std::string shared;
    if (shares(file.note->op_namespaces, other->note->op_namespaces, &shared)) {
      throw DiagnosticError(error("P09", file.place,
                                  "plugins '" + file.note->plugin + "' and '" +
                                      other->note->plugin + "' both own operator namespace '" +
                                      shared + "'",
                                  "rename one"));
    }
  }
}

Catalogue::Catalogue(std::unique_ptr<State> state) : state_(std::move(state)) {}
Catalogue::Catalogue(Catalogue&&) noexcept = default;
Catalogue& Catalogue::operator=(Catalogue&&) noexcept = default;
Catalogue::~Catalogue() = default;

Catalogue Catalogue::load(const std::vector<std::filesystem::path>& folders,
                          std::shared_ptr<Describer> describer) {
  auto state = std::make_unique<State>();
  state->files = discover(folders);
  state->describer = std::move(describer);
  return Catalogue(std::move(state));
}

const std::vector<std::unique_ptr<PluginFile>>& Catalogue::files() const { return state_->files; }

const Component* Catalogue::find(Kind kind, std::string_view name) const {
  const std::string id = id_of(kind, name);
  if (const auto known = state_->found.find(id); known != state_->found.end()) return known->second;
  const std::vector<const PluginFile*> owners = state_->owners(id);
  if (owners.empty()) return nullptr;
  const auto usable = std::find_if(owners.begin(), owners.end(),
                                   [](const PluginFile* file) { return file->accepted(); });
  if (usable == owners.end()) throw DiagnosticError(*owners.front()->refusal);
  state_->check_unique(id, **usable, owners);
  state_->describe_all();
  if (const auto failure = state_->failures.find(*usable); failure != state_->failures.end()) {
    throw DiagnosticError(failure->second);
  }
  for (const auto& component : state_->components) {
    if (component->file == *usable && component->id() == id) {
      return state_->found[id] = component.get();
    }
  }
  return nullptr;
}

std::vector<std::string> Catalogue::names(Kind kind) const {
  const std::string front = std::string(name_of(kind)) + "/";
  std::set<std::string> names;
  for (const auto& file : state_->files) {
    if (!file->accepted()) continue;
    for (const std::string& id : file->note->components) {
      if (id.starts_with(front)) names.insert(id.substr(front.size()));
    }
  }
  return {names.begin(), names.end()};
}

Diagnostic Catalogue::unknown(Kind kind, std::string_view name) const {
  Diagnostic d = error("P03", "", "no component " + id_of(kind, name));
  const std::vector<std::string> known = names(kind);
  const std::vector<std::string> near = nearest(name, known);
  std::string list;
  for (const std::string& one : near.empty() ? known : near) {
    list += (list.empty() ? "" : near.empty() ? ", " : " or ") + id_of(kind, one);
  }
  if (known.empty()) {
    d.hints = {std::string("no plugin of kind ") + name_of(kind) +
               " is installed: see assay plugins list"};
  } else {
    d.hints = {near.empty() ? "there are: " + list : "did you mean " + list + "?"};
  }
  return d;
}

void Catalogue::prepare_facts(std::span<const FactsRequest> requests) const {
  json wanted = json::array();
  std::vector<std::string> keys;
  std::set<std::string> paths;
  for (const FactsRequest& request : requests) {
    const Component* component = find(request.kind, request.name);
    if (!component) continue;
    const std::string key = facts_key(*component->file, request);
    if (state_->facts.contains(key)) continue;
    if (auto known = cache_get("facts", key)) {
      state_->facts[key] = std::move(*known);
      continue;
    }
    state_->facts[key] = nullptr;  // the same request may come twice
    keys.push_back(key);
    wanted.push_back(as_request(request));
    paths.insert(component->file->path.string());
  }
  if (keys.empty()) return;
  json answers = json::array();
  try {
    answers = state_->ask({{"files", paths}, {"facts", wanted}}).at("facts");
  } catch (const std::exception& e) {
    for (size_t i = 0; i < keys.size(); ++i) answers.push_back({{"error", e.what()}});
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    state_->facts[keys[i]] = answers.at(i);
    if (!answers[i].contains("error")) cache_put("facts", keys[i], answers[i]);
  }
}

json Catalogue::facts(Kind kind, const std::string& name, const json& options,
                      const json& context) const {
  const Component* component = find(kind, name);
  if (!component) throw DiagnosticError(unknown(kind, name));
  const FactsRequest request{kind, name, options, context};
  prepare_facts({&request, 1});
  const json& facts = state_->facts.at(facts_key(*component->file, request));
  if (!facts.contains("error")) return facts;
  const std::string text = facts.at("error");
  const size_t hint = text.find("\nhint: ");
  throw Error(text.substr(0, hint), hint == std::string::npos ? "" : text.substr(hint + 7));
}

}  // namespace assay
