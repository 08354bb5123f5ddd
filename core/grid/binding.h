// Binding: the keys and names of a study resolved against the installed plugins, all errors at
// once.
#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "core/grid/cell_state.h"
#include "core/grid/study.h"

namespace assay::grid {

struct BoundTerm {
  std::optional<size_t> key{};  ///< else an axis
  size_t axis = 0;
  const Matcher::Term* term = nullptr;
};

struct BoundMatcher {
  const Matcher* matcher = nullptr;
  std::vector<BoundTerm> terms{};
};

struct Binding {
  std::unordered_map<const Condition*, NameRefs> names;
  std::vector<BoundMatcher> exclude;
  std::vector<size_t> derive;  ///< keys, by index in Study::derive; kUnknownKey after an error
  std::set<size_t> nuisance;
  std::vector<Diagnostic> warnings;  ///< old names in use
};

/// Sets Setting::id everywhere and resolves names; unknown keys are G04.
Binding bind(Study& study, const Keys& keys, const Components& components, Findings& findings);

/// The names of a `--filter`.
NameRefs bind_condition(const Condition& condition, const Study& study, const Keys& keys,
                        const std::vector<const Component*>& used, Findings& findings);

}  // namespace assay::grid
