// Layout: the keys that a cell with these components has, and how its configuration is written.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/grid/keys.h"
#include "core/grid/rule.h"
#include "core/grid/value.h"

namespace assay::grid {

struct Binaries;

/// A value of one option, ready for expressions and for the canonical JSON.
struct Typed {
  OptionValue option{};
  Value value{};
  std::string json{};
};

/// Values live as long as the plan; equal ones are one object.
class TypedValues {
 public:
  const Typed* intern(const OptionValue& value);

 private:
  std::deque<Typed> values_;
  std::unordered_map<std::string, const Typed*> known_;
};

/// A host value that follows from others when it is not set.
enum class Computed { none, micro_batch, grad_accum, warmup, threads_per_rank };

struct Entry {
  size_t key = 0;
  const OptionSpec* spec = nullptr;  ///< null: the name of a component
  const Component* component = nullptr;
  const Typed* standard = nullptr;  ///< null: has to be set
  Computed computed = Computed::none;
};

struct Layout {
  Chosen chosen;                           ///< by index in Keys::slots()
  std::vector<Entry> entries;              ///< in the order of the canonical JSON
  std::vector<int> index;                  ///< by key id: entry, or -1
  std::vector<std::string> before;         ///< JSON text before each entry's value
  std::vector<std::string> before_recipe;  ///< the same without nuisance keys
  std::vector<bool> nuisance;              ///< by entry
  std::string after, after_recipe;
  std::vector<BoundRule> rules;
  std::string binaries_json;
  std::vector<std::string> plugin_files;

  int entry(size_t key) const { return index[key]; }
};

/// Keeps one layout for each set of components.
class Layouts {
 public:
  Layouts(const Keys& keys, TypedValues& values, RuleBook& rules, const Binaries& binaries,
          std::set<size_t> nuisance);
  const Layout& get(const Chosen& chosen);
  size_t size() const { return layouts_.size(); }

 private:
  void add_host_entries(Layout& layout);
  void add_component(Layout& layout, const Slot& slot, const Component& component);
  void write_frames(Layout& layout) const;
  void add_binaries(Layout& layout) const;

  const Keys& keys_;
  TypedValues& values_;
  RuleBook& rules_;
  const Binaries& binaries_;
  std::set<size_t> nuisance_;
  std::map<Chosen, Layout> layouts_;
};

}  // namespace assay::grid
