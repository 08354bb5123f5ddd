// Rules of manifests: compiled once per component, bound once per set of components, evaluated for
// every cell.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/grid/expression.h"
#include "core/grid/keys.h"
#include "core/grid/source.h"

namespace assay::grid {

/// What a name in a rule stands for.
struct BoundName {
  enum class Kind { key, fact, capability };
  Kind kind = Kind::key;
  size_t key = 0;      ///< id of a configuration key
  std::string word{};  ///< a capability, or a fact without "facts."
};

struct BoundRule {
  std::string id{};         ///< "R-TPHEADS", "R-NEEDS", "R-CONFLICT"
  std::string component{};  ///< "parallel/tp"
  size_t slot = 0;          ///< where the component stands
  std::string text{};
  const Expression* expression = nullptr;  ///< null: never holds (a conflict)
  std::vector<BoundName> names{};
  bool needs_facts = false;
};

/// The component of each slot, null for none.
using Chosen = std::vector<const Component*>;

class RuleBook {
 public:
  /// Unknown keys in rules (P10) go to `findings`.
  RuleBook(const Keys& keys, Findings& findings) : keys_(keys), findings_(findings) {}
  std::vector<BoundRule> bind(const Chosen& chosen);

 private:
  void add_rules(const Component& component, size_t slot, std::vector<BoundRule>& rules);
  void add_needs(const Component& component, size_t slot, std::vector<BoundRule>& rules);
  void add_conflicts(const Component& component, size_t slot, const Chosen& chosen,
                     std::vector<BoundRule>& rules);
  const Expression* compile(const Component& component, const std::string& id,
                            const std::string& text);
  bool bind_names(const Component& component, const Rule& rule, BoundRule& bound);
  void unknown_key(const Component& component, const Rule& rule, const std::string& name,
                   const std::string& prefix);

  const Keys& keys_;
  Findings& findings_;
  std::map<std::string, std::unique_ptr<Expression>> compiled_;  ///< by text
};

}  // namespace assay::grid
