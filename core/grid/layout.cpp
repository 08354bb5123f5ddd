// Building of layouts: entries in canonical order and the JSON between their values.
#include "core/grid/layout.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace assay::grid {
namespace {

Computed computed_of(std::string_view key) {
  if (key == "train.micro_batch") return Computed::micro_batch;
  if (key == "train.grad_accum") return Computed::grad_accum;
  if (key == "train.warmup") return Computed::warmup;
  if (key == "train.threads_per_rank") return Computed::threads_per_rank;
  return Computed::none;
}

std::vector<std::string_view> split(std::string_view key) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t dot = key.find('.');
    parts.push_back(key.substr(0, dot));
    if (dot == key.npos) return parts;
    key.remove_prefix(dot + 1);
  }
}

/// Writes the braces, commas and names between the values of sorted dotted keys.
class Frames {
 public:
  std::string next(std::string_view key) {
    const std::vector<std::string_view> parts = split(key);
    size_t common = 0;
    while (common < open_.size() && common + 1 < parts.size() && open_[common] == parts[common]) {
      ++common;
    }
    std::string text = first_ ? "{" : std::string(open_.size() - common, '}') + ",";
    first_ = false;
    open_.resize(common);
    for (size_t i = common; i < parts.size(); ++i) {
      text += "\"" + std::string(parts[i]) + "\":";
      if (i + 1 == parts.size()) break;
      text += "{";
      open_.emplace_back(parts[i]);
    }
    return text;
  }
  std::string end() const { return first_ ? "{}" : std::string(open_.size() + 1, '}'); }

 private:
  std::vector<std::string> open_;
  bool first_ = true;
};

}  // namespace

const Typed* TypedValues::intern(const OptionValue& value) {
  std::string json = to_json(value);
  const auto found = known_.find(json);
  if (found != known_.end() && found->second->option.index() == value.index()) return found->second;
  values_.push_back({value, to_value(value), json});
  known_[std::move(json)] = &values_.back();
  return &values_.back();
}

Layouts::Layouts(const Keys& keys, TypedValues& values, RuleBook& rules, const Binaries& binaries,
                 std::set<size_t> nuisance)
    : keys_(keys),
      values_(values),
      rules_(rules),
      binaries_(binaries),
      nuisance_(std::move(nuisance)) {}

const Layout& Layouts::get(const Chosen& chosen) {
  const auto found = layouts_.find(chosen);
  if (found != layouts_.end()) return found->second;
  Layout& layout = layouts_[chosen];
  layout.chosen = chosen;
  add_host_entries(layout);
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) add_component(layout, keys_.slots()[i], *chosen[i]);
  }
  std::sort(layout.entries.begin(), layout.entries.end(),
            [&](const Entry& a, const Entry& b) { return keys_[a.key].name < keys_[b.key].name; });
  layout.index.assign(keys_.size(), -1);
  for (size_t i = 0; i < layout.entries.size(); ++i) {
    layout.index[layout.entries[i].key] = static_cast<int>(i);
  }
  write_frames(layout);
  add_binaries(layout);
  layout.rules = rules_.bind(chosen);
  return layout;
}

void Layouts::add_host_entries(Layout& layout) {
  for (size_t id = 0; id < keys_.size(); ++id) {
    const OptionSpec* spec = keys_[id].host;
    if (!spec) continue;
    Entry entry{.key = id, .spec = spec, .computed = computed_of(spec->name)};
    if (entry.computed == Computed::none) entry.standard = values_.intern(spec->default_value);
    if (spec->name == "optim.lr") {
      entry.standard = nullptr;
      for (const Component* c : layout.chosen) {
        if (c && c->kind == Kind::optim && c->default_lr) {
          entry.standard = values_.intern(*c->default_lr);
        }
      }
    }
    layout.entries.push_back(entry);
  }
}

void Layouts::add_component(Layout& layout, const Slot& slot, const Component& component) {
  layout.entries.push_back(
      {.key = slot.name_key, .component = &component, .standard = values_.intern(component.name)});
  for (const OptionSpec& spec : component.options) {
    const size_t key = *keys_.find(slot.prefix + "." + spec.name);
    if (keys_[key].host) continue;  // the host's key wins over an option of that name
    layout.entries.push_back(
        {.key = key,
         .spec = &spec,
         .component = &component,
         .standard = spec.required ? nullptr : values_.intern(spec.default_value)});
  }
}

void Layouts::write_frames(Layout& layout) const {
  Frames full, recipe;
  for (const Entry& entry : layout.entries) {
    const std::string& name = keys_[entry.key].name;
    const bool nuisance = nuisance_.contains(entry.key);
    layout.before.push_back(full.next(name));
    layout.before_recipe.push_back(nuisance ? std::string() : recipe.next(name));
    layout.nuisance.push_back(nuisance);
  }
  layout.after = full.end();
  layout.after_recipe = recipe.end();
}

void Layouts::add_binaries(Layout& layout) const {
  nlohmann::json plugins = nlohmann::json::object();
  for (const Component* component : layout.chosen) {
    const PluginFile* file = component ? component->file : nullptr;
    if (!file) continue;
    plugins[file->note && !file->note->plugin.empty() ? file->note->plugin : component->name] =
        file->sha256;
    layout.plugin_files.push_back(file->path.string());
  }
  auto& files = layout.plugin_files;
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  const nlohmann::json json = {{"libassay", binaries_.libassay},
                               {"libtorch", binaries_.libtorch},
                               {"plugins", plugins},
                               {"worker", binaries_.worker}};
  layout.binaries_json = json.dump();
}

}  // namespace assay::grid
