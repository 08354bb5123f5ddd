// Resolution of one cell: layers, dependent axes, copies, derived and computed values.
#include "core/grid/cell_state.h"

#include <algorithm>

#include "core/grid/labels.h"
#include "core/grid/reading.h"

namespace assay::grid {
namespace {

constexpr int kMostCopies = 16;
constexpr int64_t kWarmupShare = 10;  // of the steps: one tenth, rounded down

/// "${key.path}" as the key, nothing for other text.
std::optional<std::string> copied_key(const Node& node) {
  const std::string& text = node.text;
  if (!node.is_scalar() || !text.starts_with("${") || !text.ends_with("}")) return std::nullopt;
  if (text.starts_with("${env:") || text.find('}') + 1 != text.size()) return std::nullopt;
  return text.substr(2, text.size() - 3);
}

std::optional<OptionValue> as_option(const Value& value, const OptionSpec* spec) {
  if (const auto* i = get_if<int64_t>(value)) {
    if (spec && spec->type == OptionType::real) return static_cast<double>(*i);
    return *i;
  }
  if (const auto* b = get_if<bool>(value)) return *b;
  if (const auto* d = get_if<double>(value)) return *d;
  if (const auto* s = get_if<std::string>(value)) return *s;
  const auto* list = get_if<std::vector<Value>>(value);
  if (!list) return std::nullopt;
  std::vector<std::string> items;
  for (const Value& item : *list) {
    const auto* text = get_if<std::string>(item);
    items.push_back(text ? *text : print(item));
  }
  return items;
}

}  // namespace

/// Looks a condition's names up in a cell.
class CellState::ConditionScope final : public Scope {
 public:
  ConditionScope(CellState& state, const NameRefs& refs) : state_(state), refs_(refs) {}
  Value value(size_t name) const override {
    const NameRef& ref = refs_[name];
    if (ref.key) {
      if (*ref.key == kUnknownKey) return {};
      const Typed* typed = state_.typed(*ref.key);
      return typed ? typed->value : Value();
    }
    for (const Pick& pick : state_.picks_) {
      if (pick.axis->id == ref.axis) return pick.point->label;
    }
    return {};
  }

 private:
  CellState& state_;
  const NameRefs& refs_;
};

CellState::CellState(const Shared& shared, const Study& study)
    : shared_(shared), study_(study), base_(shared.keys.size()) {
  derived_.resize(base_.size());
  const auto add = [&](const Settings& settings) {
    for (const Setting& s : settings) {
      if (s.id == kUnknownKey) continue;
      base_[s.id] = s.value->is_null() ? nullptr : &s;
      base_keys_.push_back(s.id);
    }
  };
  add(study_.defaults);
  add(study_.base);
  add(study_.command_line);
}

void CellState::apply(const Setting& setting) {
  if (setting.id == kUnknownKey) return;
  settings_[setting.id] = setting.value->is_null() ? nullptr : &setting;
  set_keys_.push_back(setting.id);
  if (shared_.keys[setting.id].slot) layout_known_ = false;
}

void CellState::derive(size_t key, const Typed* value) {
  derived_[key] = value;
  set_keys_.push_back(key);
  if (shared_.keys[key].slot) layout_known_ = false;
}

void CellState::check_base() {
  start({}, {});
  if (!layout()) return;
  for (size_t i = 0; i < layout_->entries.size(); ++i) {
    if (settings_[layout_->entries[i].key]) entry(i);
  }
}

bool CellState::start(const Draft& draft,
                      const std::unordered_map<const Condition*, NameRefs>& refs) {
  const size_t errors = shared_.findings.size();
  settings_ = base_;
  set_keys_ = base_keys_;
  std::fill(derived_.begin(), derived_.end(), nullptr);
  picks_.clear();
  layout_known_ = false;
  for (const Block* block : draft.blocks) {
    for (const Setting& s : block->set) apply(s);
  }
  const auto take = [&](const Pick& pick) {
    picks_.push_back(pick);
    for (const Setting& s : pick.point->settings) apply(s);
  };
  bool dependent = false;
  for (const Pick& pick : draft.picks) {
    const bool waits = pick.axis->when || pick.point->when;
    dependent = dependent || waits;
    if (!waits) take(pick);
  }
  if (!dependent) return true;
  for (const Pick& pick : draft.picks) {  // dependent axes see all independent ones
    const Condition *axis = pick.axis->when, *point = pick.point->when;
    if (!axis && !point) continue;
    if (axis && !holds(*axis, refs.at(axis))) continue;
    if (point && !holds(*point, refs.at(point))) continue;
    take(pick);
  }
  return shared_.findings.size() == errors;
}

const Component* CellState::named_component(const Node& node, const Slot& slot) {
  const auto [found, fresh] = named_.emplace(&node, nullptr);
  if (!fresh) return found->second;
  try {
    const Component* component =
        node.is_scalar() ? shared_.components.find(slot.kind, node.text) : nullptr;
    if (!component) {
      const Diagnostic unknown = shared_.components.unknown(slot.kind, describe(node));
      shared_.findings.error(unknown.id, node.mark, unknown.text, unknown.hints);
    } else if (slot.kind == Kind::parallel &&
               std::find(component->dims.begin(), component->dims.end(), slot.dim) ==
                   component->dims.end()) {
      std::string dims;
      for (const std::string& dim : component->dims) dims += (dims.empty() ? "" : ", ") + dim;
      shared_.findings.error("P03", node.mark,
                             component->id() + " serves " + dims + ", not " + slot.dim);
    } else {
      found->second = component;
    }
  } catch (const DiagnosticError& error) {
    for (const Diagnostic& d : error.diagnostics()) shared_.findings.add(d);
  }
  return found->second;
}

const Component* CellState::component_of(const Slot& slot) {
  const size_t key = slot.name_key;
  if (const Typed* derived = derived_[key]) {
    const auto* name = std::get_if<std::string>(&derived->option);
    return name ? shared_.components.find(slot.kind, *name) : nullptr;
  }
  if (const Setting* setting = settings_[key]) return named_component(*setting->value, slot);
  if (slot.standard.empty()) return nullptr;
  const auto [found, fresh] = standard_.emplace(slot.prefix, nullptr);
  if (fresh) {
    found->second = shared_.components.find(slot.kind, slot.standard);
    if (!found->second) {
      const Diagnostic unknown = shared_.components.unknown(slot.kind, slot.standard);
      shared_.findings.error(unknown.id, shared_.start, unknown.text + " (the default)",
                             unknown.hints);
    }
  }
  return found->second;
}

const Layout* CellState::layout() {
  if (layout_known_) return layout_;
  layout_known_ = true;
  layout_ = nullptr;
  Chosen chosen;
  bool complete = true;
  for (const Slot& slot : shared_.keys.slots()) {
    chosen.push_back(component_of(slot));
    if (chosen.back() || slot.kind == Kind::parallel) {
      complete = complete && (chosen.back() || !settings_[slot.name_key]);
      continue;
    }
    complete = false;
    if (settings_[slot.name_key] || !slot.standard.empty()) continue;  // reported already
    if (!shared_.findings.empty()) continue;  // a mistyped key may be the cause
    shared_.findings.error("G15", shared_.start, "the study names no " + slot.prefix,
                           {"set '" + slot.prefix + ".name' under 'base:'"});
  }
  if (complete) layout_ = &shared_.layouts.get(chosen);
  return layout_;
}

const Typed* CellState::typed(size_t key) {
  const Layout* current = layout();
  if (!current) return nullptr;
  const int index = current->entry(key);
  return index < 0 ? nullptr : entry(static_cast<size_t>(index));
}

const Typed* CellState::entry(size_t index) {
  const Entry& entry = layout_->entries[index];
  if (derived_[entry.key]) return derived_[entry.key];
  if (!entry.spec) return entry.standard;  // the name of the component
  const Setting* setting = settings_[entry.key];
  if (setting && entry.computed != Computed::grad_accum) return read(*setting, entry);
  return entry.standard ? entry.standard : computed(entry);
}

const Typed* CellState::read(const Setting& setting, const Entry& entry) {
  if (const auto from = copied_key(*setting.value)) return copied(setting, entry, *from);
  const auto [found, fresh] = read_.emplace(std::pair(setting.value, entry.spec), nullptr);
  if (!fresh) return found->second;
  const std::string& key = shared_.keys[entry.key].name;
  if (const auto value = read_value(*setting.value, *entry.spec, key, shared_.findings)) {
    const bool to_real = entry.spec->type == OptionType::real;
    found->second =
        shared_.values.intern(to_real ? *as_option(to_value(*value), entry.spec) : *value);
  }
  return found->second;
}

const Typed* CellState::copied(const Setting& setting, const Entry& entry,
                               const std::string& from) {
  const Mark& mark = setting.value->mark;
  const auto key = shared_.keys.find(from);
  if (!key) {
    shared_.findings.error("G04", mark,
                           "unknown option '" + from + "' in '" + setting.value->text + "'",
                           shared_.keys.suggestions(from, layout_->chosen));
    return nullptr;
  }
  if (copy_depth_ >= kMostCopies) {
    shared_.findings.error("G03", mark, "'" + setting.value->text + "' copies itself in a circle");
    return nullptr;
  }
  ++copy_depth_;
  const Typed* source = typed(*key);
  --copy_depth_;
  if (!source && layout_->entry(*key) >= 0) return nullptr;  // reported
  if (!source) {
    shared_.findings.error("G04", mark, "a cell has no '" + from + "' to copy");
    return nullptr;
  }
  return convert(source->value, entry.key, mark);
}

const Typed* CellState::convert(const Value& value, size_t key, const Mark& mark) {
  const int index = layout() ? layout_->entry(key) : -1;
  const OptionSpec* spec = index < 0 ? nullptr : layout_->entries[index].spec;
  const auto option = as_option(value, spec);
  if (!option) {
    shared_.findings.error("G15", mark, "'" + shared_.keys[key].name + "' would be undefined");
    return nullptr;
  }
  if (spec) {
    if (const auto text = check_value(*spec, shared_.keys[key].name, *option)) {
      shared_.findings.error(spec->type == OptionType::choice ? "G14" : "G15", mark, *text);
      return nullptr;
    }
  }
  return shared_.values.intern(*option);
}

int64_t CellState::whole(std::string_view key) {
  const Typed* value = typed(*shared_.keys.find(key));
  const auto* number = value ? std::get_if<int64_t>(&value->option) : nullptr;
  return number ? *number : 1;
}

const Typed* CellState::computed(const Entry& entry) {
  switch (entry.computed) {
    case Computed::micro_batch: {
      const int64_t ranks = whole("mesh.dp_replicate") * whole("mesh.dp_shard");
      return shared_.values.intern(std::max<int64_t>(1, whole("train.global_batch") / ranks));
    }
    case Computed::grad_accum: {
      const int64_t forward =
          whole("train.micro_batch") * whole("mesh.dp_replicate") * whole("mesh.dp_shard");
      return shared_.values.intern(std::max<int64_t>(1, whole("train.global_batch") / forward));
    }
    case Computed::warmup:
      return shared_.values.intern(whole("train.steps") / kWarmupShare);
    case Computed::threads_per_rank: {
      int64_t world = 1;
      for (const std::string_view dim : kMeshDims) {
        if (dim != "ep") world *= whole("mesh." + std::string(dim));
      }
      return shared_.values.intern(std::max<int64_t>(1, shared_.devices / world));
    }
    case Computed::none:
      break;
  }
  shared_.findings.error("G15", shared_.start,
                         "'" + shared_.keys[entry.key].name + "' has no default and must be set" +
                             (entry.component ? " (" + entry.component->id() + ")" : ""));
  return nullptr;
}

Value CellState::evaluate(const Condition& condition, const NameRefs& refs) {
  try {
    return condition.expression.evaluate(ConditionScope(*this, refs));
  } catch (const ExpressionError& error) {
    shared_.findings.error(error.id, condition.mark, error.what());
    return {};
  }
}

bool CellState::holds(const Condition& condition, const NameRefs& refs) {
  const Value value = evaluate(condition, refs);
  if (is_undefined(value)) return false;
  if (const auto* yes = get_if<bool>(value)) return *yes;
  shared_.findings.error("G16", condition.mark,
                         "the condition gives " + print(value) + ", not true or false");
  return false;
}

std::string CellState::slug_of_picks() const { return slug_of(picks_, study_.name); }

}  // namespace assay::grid
