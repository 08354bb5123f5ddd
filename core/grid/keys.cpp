// The universe of keys, and the suggestions for those outside of it.
#include "core/grid/keys.h"

#include <algorithm>

#include "core/base/nearest.h"

namespace assay::grid {
namespace {

/// Sections with one component, and what a cell gets that names none.
struct Section {
  Kind kind;
  const char* standard;
};
constexpr Section kSections[] = {{Kind::model, ""},      {Kind::data, ""},
                                 {Kind::memory, "none"}, {Kind::precision, "fp32"},
                                 {Kind::optim, "adamw"}, {Kind::compile, "eager"},
                                 {Kind::comm, "shm"}};

std::string declared(const std::string& by) { return " (declared by " + by + ")"; }

}  // namespace

Keys::Keys(const Components& components) {
  for (const Section& section : kSections) {
    slots_.push_back(
        {.prefix = name_of(section.kind), .kind = section.kind, .standard = section.standard});
  }
  for (const std::string_view dim : kMeshDims) {
    slots_.push_back({.prefix = "parallel." + std::string(dim),
                      .kind = Kind::parallel,
                      .dim = std::string(dim)});
  }
  for (const OptionSpec& spec : host_keys()) keys_[add(spec.name)].host = &spec;
  for (Slot& slot : slots_) {
    slot.name_key = add(slot.prefix + ".name");
    keys_[slot.name_key].slot = &slot;
    for (const std::string& name : components.names(slot.kind)) {
      try {
        if (const Component* c = components.find(slot.kind, name)) add_component(slot, *c);
      } catch (const DiagnosticError&) {
        // A broken plugin is an error where a cell names it, not here.
      }
    }
  }
}

size_t Keys::add(const std::string& name) {
  const auto [found, fresh] = ids_.emplace(name, keys_.size());
  if (fresh) keys_.push_back({.name = name});
  return found->second;
}

void Keys::add_component(const Slot& slot, const Component& component) {
  const auto& dims = component.dims;
  if (slot.kind == Kind::parallel && std::find(dims.begin(), dims.end(), slot.dim) == dims.end()) {
    return;
  }
  for (const OptionSpec& spec : component.options) {
    const size_t id = add(slot.prefix + "." + spec.name);
    keys_[id].declared_by.push_back(&component);
    for (const std::string& alias : spec.aliases) aliases_.emplace(slot.prefix + "." + alias, id);
  }
}

std::optional<size_t> Keys::find(std::string_view name) const {
  const auto found = ids_.find(std::string(name));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<size_t> Keys::find_alias(std::string_view name) const {
  const auto found = aliases_.find(std::string(name));
  return found == aliases_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> Keys::suggestions(std::string_view name,
                                           const std::vector<const Component*>& used) const {
  std::vector<std::string> in_use, others;
  for (const KeyInfo& key : keys_) {
    const bool uses =
        key.host || key.slot ||
        std::any_of(key.declared_by.begin(), key.declared_by.end(), [&](const Component* c) {
          return std::find(used.begin(), used.end(), c) != used.end();
        });
    (uses ? in_use : others).push_back(key.name);
  }
  std::vector<std::string> all = in_use;
  all.insert(all.end(), others.begin(), others.end());
  const std::vector<std::string> best = nearest(name, all);
  const bool another =
      !best.empty() && std::find(others.begin(), others.end(), best[0]) != others.end();
  std::vector<std::string> near = nearest(name, in_use);
  if (!near.empty() && !another) {
    const KeyInfo& first = keys_[*find(near[0])];
    if (first.host || first.slot) return {did_you_mean(near) + declared("the host")};
    for (const Component* c : first.declared_by) {
      if (std::find(used.begin(), used.end(), c) != used.end()) {
        return {did_you_mean(near) + declared(c->id())};
      }
    }
  }
  near = nearest(name, others);
  if (near.empty()) return {};
  return {did_you_mean(near) + " (from " + keys_[*find(near[0])].declared_by[0]->id() +
          ", which no cell uses)"};
}

}  // namespace assay::grid
