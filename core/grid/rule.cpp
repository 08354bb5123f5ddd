// Compiling and binding of rules, needs and conflicts.
#include "core/grid/rule.h"

#include <algorithm>
#include <optional>

#include "assay/capability.h"
#include "core/base/nearest.h"

namespace assay::grid {
namespace {

constexpr std::string_view kFacts = "facts.";

bool is_capability(std::string_view word) {
  return std::find(kCapabilities.begin(), kCapabilities.end(), word) != kCapabilities.end();
}

std::string place_of(const Component& component) {
  return component.file ? component.file->place : component.id();
}

}  // namespace

std::vector<BoundRule> RuleBook::bind(const Chosen& chosen) {
  std::vector<BoundRule> rules;
  for (size_t slot = 0; slot < chosen.size(); ++slot) {
    if (!chosen[slot]) continue;
    add_conflicts(*chosen[slot], slot, chosen, rules);
    add_needs(*chosen[slot], slot, rules);
    add_rules(*chosen[slot], slot, rules);
  }
  return rules;
}

void RuleBook::add_conflicts(const Component& component, size_t slot, const Chosen& chosen,
                             std::vector<BoundRule>& rules) {
  for (const Conflict& conflict : component.conflicts) {
    const bool meets = std::any_of(chosen.begin(), chosen.end(), [&](const Component* other) {
      return other && other->id() == conflict.with;
    });
    if (!meets) continue;
    rules.push_back(
        {.id = "R-CONFLICT",
         .component = component.id(),
         .slot = slot,
         .text = component.id() + " conflicts with " + conflict.with + ": " + conflict.reason});
  }
}

void RuleBook::add_needs(const Component& component, size_t slot, std::vector<BoundRule>& rules) {
  for (const std::string& word : component.needs) {
    BoundRule bound{.id = "R-NEEDS",
                    .component = component.id(),
                    .slot = slot,
                    .text = component.id() + " needs " + word +
                            ", which neither this machine nor another component provides",
                    .expression = compile(component, "R-NEEDS", word)};
    if (!bound.expression) continue;
    bound.names = {{.kind = BoundName::Kind::capability, .word = word}};
    rules.push_back(std::move(bound));
  }
}

void RuleBook::add_rules(const Component& component, size_t slot, std::vector<BoundRule>& rules) {
  for (const Rule& rule : component.rules) {
    BoundRule bound{.id = rule.id,
                    .component = component.id(),
                    .slot = slot,
                    .text = rule.text,
                    .expression = compile(component, rule.id, rule.expression)};
    if (bound.expression && bind_names(component, rule, bound)) rules.push_back(std::move(bound));
  }
}

const Expression* RuleBook::compile(const Component& component, const std::string& id,
                                    const std::string& text) {
  const auto found = compiled_.find(text);
  if (found != compiled_.end()) return found->second.get();
  auto& expression = compiled_[text];
  try {
    expression = std::make_unique<Expression>(Expression::compile(text));
  } catch (const ExpressionError& error) {
    findings_.add({.id = "P10",
                   .place = place_of(component),
                   .text = "rule " + id + " of " + component.id() + ": " + error.what()});
  }
  return expression.get();
}

bool RuleBook::bind_names(const Component& component, const Rule& rule, BoundRule& bound) {
  const std::string prefix = keys_.slots()[bound.slot].prefix + ".";
  for (const ExpressionName& name : bound.expression->names()) {
    const bool dotted = name.text.find('.') != name.text.npos;
    if (name.text.starts_with(kFacts)) {
      bound.needs_facts = true;
      bound.names.push_back(
          {.kind = BoundName::Kind::fact, .word = name.text.substr(kFacts.size())});
    } else if (is_capability(name.text)) {
      bound.names.push_back({.kind = BoundName::Kind::capability, .word = name.text});
    } else {
      std::optional<size_t> key;
      if (!dotted) key = keys_.find(prefix + name.text);
      if (!key) key = keys_.find(name.text);
      if (!key) {
        unknown_key(component, rule, name.text, dotted ? "" : prefix);
        return false;
      }
      bound.names.push_back({.kind = BoundName::Kind::key, .key = *key});
    }
  }
  return true;
}

void RuleBook::unknown_key(const Component& component, const Rule& rule, const std::string& name,
                           const std::string& prefix) {
  std::vector<std::string> known;
  for (size_t id = 0; id < keys_.size(); ++id) {
    const std::string& key = keys_[id].name;
    if (key.starts_with(prefix)) known.push_back(key.substr(prefix.size()));
  }
  Diagnostic diagnostic{.id = "P10",
                        .place = place_of(component),
                        .text = "rule " + rule.id + " of " + component.id() + ": no key '" + name +
                                "' in \"" + rule.expression + "\""};
  const std::string near = did_you_mean(nearest(name, known));
  if (!near.empty()) diagnostic.hints.push_back(near);
  findings_.add(std::move(diagnostic));
}

}  // namespace assay::grid
