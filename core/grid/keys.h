// Keys: every configuration key that the host or an installed plugin declares, numbered.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/grid/components.h"
#include "core/grid/host_keys.h"
#include "core/grid/source.h"

namespace assay::grid {

/// A place in the configuration that holds one component.
struct Slot {
  std::string prefix{};  ///< "optim", "parallel.tp"
  Kind kind = Kind::model;
  std::string dim{};       ///< of parallel
  std::string standard{};  ///< component of a cell that names none; empty: no component
  size_t name_key = 0;     ///< id of "<prefix>.name"
};

struct KeyInfo {
  std::string name{};
  const OptionSpec* host = nullptr;
  std::vector<const Component*> declared_by{};
  const Slot* slot = nullptr;  ///< of a ".name" key
};

class Keys {
 public:
  explicit Keys(const Components& components);

  size_t size() const { return keys_.size(); }
  const KeyInfo& operator[](size_t id) const { return keys_[id]; }
  std::optional<size_t> find(std::string_view name) const;

  /// The key that `name` is an old name of.
  std::optional<size_t> find_alias(std::string_view name) const;

  const std::vector<Slot>& slots() const { return slots_; }

  /// "did you mean 'optim.beta1'? (declared by optim/lion)": names of the components in use
  /// first, then of any other ("from plugin ..., which no cell uses").
  std::vector<std::string> suggestions(std::string_view name,
                                       const std::vector<const Component*>& used) const;

  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

 private:
  size_t add(const std::string& name);
  void add_component(const Slot& slot, const Component& component);

  std::vector<KeyInfo> keys_;
  std::vector<Slot> slots_;
  std::unordered_map<std::string, size_t> ids_;
  std::unordered_map<std::string, size_t> aliases_;
};

}  // namespace assay::grid
