// CellState: one point of the grid while it is resolved: settings by key, read when asked for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/grid/expand.h"
#include "core/grid/layout.h"

namespace assay::grid {

/// What all cells of a study share.
struct Shared {
  const Components& components;
  const Keys& keys;
  TypedValues& values;
  Layouts& layouts;
  Findings& findings;
  int devices = 1;  ///< of the machine
  Mark start;       ///< of the study
};

/// Names of a condition as keys or axes.
struct NameRef {
  std::optional<size_t> key;
  size_t axis = 0;
};
using NameRefs = std::vector<NameRef>;

class CellState {
 public:
  CellState(const Shared& shared, const Study& study);

  /// Starts a cell from the layers below the grid, then applies what the draft sets. Axes whose
  /// `when` is false set nothing and leave picks(). False after an error.
  bool start(const Draft& draft, const std::unordered_map<const Condition*, NameRefs>& refs);
  void apply(const Setting& setting);
  void derive(size_t key, const Typed* value);

  /// Reads what the layers below the grid set, for its errors.
  void check_base();

  /// Null, after an error, when a component is missing or unknown.
  const Layout* layout();

  /// The value of a key, null when the cell has no such key or after an error.
  const Typed* typed(size_t key);
  const Typed* entry(size_t index);

  /// Whether a condition holds; false after an error.
  bool holds(const Condition& condition, const NameRefs& refs);
  Value evaluate(const Condition& condition, const NameRefs& refs);

  /// A value as the option's type; reports G15 at `mark`.
  const Typed* convert(const Value& value, size_t key, const Mark& mark);

  const std::vector<Pick>& picks() const { return picks_; }
  const Setting* setting(size_t key) const { return settings_[key]; }
  bool is_derived(size_t key) const { return derived_[key] != nullptr; }
  const std::vector<size_t>& set_keys() const { return set_keys_; }
  std::string slug_of_picks() const;

 private:
  class ConditionScope;

  const Component* component_of(const Slot& slot);
  const Component* named_component(const Node& node, const Slot& slot);
  const Typed* read(const Setting& setting, const Entry& entry);
  const Typed* copied(const Setting& setting, const Entry& entry, const std::string& from);
  const Typed* computed(const Entry& entry);
  int64_t whole(std::string_view key);

  const Shared& shared_;
  const Study& study_;
  std::vector<const Setting*> base_, settings_;
  std::vector<const Typed*> derived_;
  std::vector<size_t> base_keys_, set_keys_;
  std::vector<Pick> picks_;
  const Layout* layout_ = nullptr;
  bool layout_known_ = false;
  int copy_depth_ = 0;
  std::unordered_map<const Node*, const Component*> named_;
  std::map<std::pair<const Node*, const OptionSpec*>, const Typed*> read_;
  std::map<std::string, const Component*> standard_;
};

}  // namespace assay::grid
