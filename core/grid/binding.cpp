// Resolution of keys, conditions and matchers.
#include "core/grid/binding.h"

#include <algorithm>

namespace assay::grid {
namespace {

class Binder {
 public:
  Binder(Study& study, const Keys& keys, const Components& components, Findings& findings)
      : study_(study), keys_(keys), components_(components), findings_(findings) {}

  Binding bind() {
    visit([this](Setting& s) { note_used(s); });
    for (const Slot& slot : keys_.slots()) {
      if (!named_.contains(slot.name_key)) use(slot, slot.standard);
    }
    visit([this](Setting& s) { resolve(s); });
    for (const Condition& condition : study_.conditions) {
      binding_.names[&condition] = bind_condition(condition, study_, keys_, used_, findings_);
    }
    for (Derived& derived : study_.derive) bind_derived(derived);
    for (const Matcher& matcher : study_.exclude) bind_matcher(matcher);
    for (const std::string& key : study_.nuisance) bind_nuisance(key);
    return std::move(binding_);
  }

 private:
  template <class Visit>
  void visit(Visit visit) {
    const auto all = [&](Settings& settings) {
      for (Setting& s : settings) visit(s);
    };
    const auto axis = [&](Axis& axis) {
      for (AxisPoint& point : axis.points) all(point.settings);
    };
    const auto block = [&](auto& self, Block& block) -> void {
      all(block.set);
      for (Axis& a : block.axes) axis(a);
      for (auto& row : block.rows) {
        for (Axis& a : row) axis(a);
      }
      for (Block& inner : block.blocks) self(self, inner);
    };
    all(study_.defaults);
    all(study_.base);
    all(study_.command_line);
    block(block, study_.grid);
    for (auto& row : study_.include) {
      for (Axis& a : row) axis(a);
    }
    if (study_.seeds) axis(*study_.seeds);
  }

  void use(const Slot& slot, const std::string& name) {
    if (name.empty()) return;
    try {
      const Component* component = components_.find(slot.kind, name);
      if (component) used_.push_back(component);
    } catch (const DiagnosticError&) {
      // Reported where the cell is resolved.
    }
  }

  void note_used(const Setting& setting) {
    const auto key = keys_.find(setting.key);
    if (key && keys_[*key].slot && setting.value->is_scalar()) {
      if (setting.layer != Layer::axis) named_.insert(*key);
      use(*keys_[*key].slot, setting.value->text);
    }
  }

  void resolve(Setting& setting) {
    if (const auto key = resolved(setting.key, setting.key_mark)) setting.id = *key;
    if (setting.key == "train.grad_accum") {
      findings_.error("G15", setting.key_mark,
                      "'train.grad_accum' is derived, never set: global_batch / (micro_batch * "
                      "dp_replicate * dp_shard)",
                      {"set train.micro_batch"});
    }
  }

  std::optional<size_t> resolved(const std::string& name, Mark mark) {
    if (const auto key = keys_.find(name)) return key;
    mark.length = written_length(mark, name);
    if (const auto key = keys_.find_alias(name)) {
      binding_.warnings.push_back(
          make_diagnostic(Severity::warning, "G20", mark,
                          "'" + name + "' is an old name of '" + keys_[*key].name + "'"));
      return key;
    }
    std::vector<std::string> hints = keys_.suggestions(name, used_);
    if (hints.empty()) hints = section_hint(name);
    findings_.error("G04", mark, "unknown option '" + name + "'", hints);
    return std::nullopt;
  }

  /// The key as it stands at the mark: its last part, or dotted.
  static int written_length(const Mark& mark, const std::string& name) {
    if (!mark.source || mark.line < 1) return 1;
    const std::string& line = mark.source->lines[mark.line - 1];
    const std::string_view rest = std::string_view(line).substr(byte_offset(line, mark.column));
    std::string_view tail = name;
    for (;;) {
      if (rest.starts_with(tail)) return code_points(tail);
      const size_t dot = tail.find('.');
      if (dot == tail.npos) return mark.length;
      tail.remove_prefix(dot + 1);
    }
  }

  std::vector<std::string> section_hint(const std::string& name) const {
    std::string list;
    const size_t dot = name.find('.');
    const std::string section = name.substr(0, dot) + ".";
    for (size_t id = 0; id < keys_.size(); ++id) {
      const KeyInfo& key = keys_[id];
      const bool used =
          key.host || key.slot ||
          std::any_of(key.declared_by.begin(), key.declared_by.end(), [&](const Component* c) {
            return std::find(used_.begin(), used_.end(), c) != used_.end();
          });
      if (used && key.name.starts_with(section)) list += (list.empty() ? "" : ", ") + key.name;
    }
    if (!list.empty()) return {"known: " + list};
    return {
        "the sections are model, data, mesh, parallel, memory, precision, optim, compile, "
        "comm, train, seed"};
  }

  void bind_derived(Derived& derived) {
    const auto key = resolved(derived.key, derived.key_mark);
    binding_.derive.push_back(key.value_or(kUnknownKey));
    binding_.names[&derived.condition] =
        bind_condition(derived.condition, study_, keys_, used_, findings_);
    if (derived.key == "train.grad_accum") {
      findings_.error("G15", derived.key_mark, "'train.grad_accum' is derived already");
    }
  }

  void bind_matcher(const Matcher& matcher) {
    BoundMatcher bound{.matcher = &matcher};
    const auto& axes = study_.axis_names;
    for (const Matcher::Term& term : matcher.terms) {
      BoundTerm b{.term = &term};
      const auto axis = std::find(axes.begin(), axes.end(), term.key);
      b.key = keys_.find(term.key);
      if (!b.key && axis != axes.end()) {
        b.axis = static_cast<size_t>(axis - axes.begin());
        check_labels(term, b.axis);
      } else if (!b.key) {
        b.key = resolved(term.key, term.mark).value_or(kUnknownKey);
      }
      bound.terms.push_back(b);
    }
    binding_.exclude.push_back(std::move(bound));
  }

  /// A matcher that names a label which the axis does not have would match nothing in silence.
  void check_labels(const Matcher::Term& term, size_t id) {
    std::vector<std::string> labels;
    collect_labels(study_.grid, id, labels);
    for (const Node* value : term.values) {
      if (std::find(labels.begin(), labels.end(), value->text) != labels.end()) continue;
      std::string list;
      for (const std::string& label : labels) list += (list.empty() ? "" : ", ") + label;
      findings_.error(
          "G14", value->mark,
          "'" + term.key + "' must be one of " + list + "; got '" + describe(*value) + "'");
    }
  }

  static void collect_labels(const Block& block, size_t id, std::vector<std::string>& labels) {
    const auto take = [&](const Axis& axis) {
      if (axis.id != id) return;
      for (const AxisPoint& point : axis.points) labels.push_back(point.label);
    };
    for (const Axis& axis : block.axes) take(axis);
    for (const auto& row : block.rows) {
      for (const Axis& axis : row) take(axis);
    }
    if (block.label) take(*block.label);
    for (const Block& inner : block.blocks) collect_labels(inner, id, labels);
  }

  void bind_nuisance(const std::string& key) {
    const Member* list = study_.root.member("nuisance");
    Mark mark = list ? list->mark : study_.start();
    if (list) {
      for (const Node& item : list->value.items) {
        if (item.text == key) mark = item.mark;
      }
    }
    const std::string canonical = is_section(key) ? key + ".name" : key;
    if (const auto id = resolved(canonical, mark)) binding_.nuisance.insert(*id);
  }

  bool is_section(const std::string& key) const {
    return std::any_of(keys_.slots().begin(), keys_.slots().end(),
                       [&](const Slot& slot) { return slot.prefix == key; });
  }

  Study& study_;
  const Keys& keys_;
  const Components& components_;
  Findings& findings_;
  Binding binding_;
  std::vector<const Component*> used_;
  std::set<size_t> named_;  ///< name keys that the study sets outside of axes
};

}  // namespace

Binding bind(Study& study, const Keys& keys, const Components& components, Findings& findings) {
  return Binder(study, keys, components, findings).bind();
}

NameRefs bind_condition(const Condition& condition, const Study& study, const Keys& keys,
                        const std::vector<const Component*>& used, Findings& findings) {
  NameRefs refs;
  const auto& axes = study.axis_names;
  for (const ExpressionName& name : condition.expression.names()) {
    NameRef ref{.key = keys.find(name.text)};
    const auto axis = std::find(axes.begin(), axes.end(), name.text);
    if (!ref.key && axis != axes.end()) {
      ref.axis = static_cast<size_t>(axis - axes.begin());
    } else if (!ref.key) {
      Mark mark = condition.mark;
      const bool dotted = name.text.find('.') != name.text.npos;
      std::vector<std::string> hints = keys.suggestions(name.text, used);
      if (hints.empty() && !dotted) hints = {"quote it if it is text: '" + name.text + "'"};
      findings.error("G04", mark,
                     "unknown key '" + name.text + "' in \"" + condition.expression.text() + "\"",
                     hints);
      ref.key = kUnknownKey;
    }
    refs.push_back(ref);
  }
  return refs;
}

}  // namespace assay::grid
