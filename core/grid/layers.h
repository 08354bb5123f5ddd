// Layers: how a study's files become one tree, and nested maps become dotted keys.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/grid/node.h"
#include "core/grid/study.h"

namespace assay::grid {

/// True for "optim", "parallel.tp": a plain value there names a component.
bool is_component_position(std::string_view key);

struct FlatMember {
  std::string key;
  Mark mark;
  const Node* value = nullptr;  ///< a scalar, a sequence or null
};

/// A map as members with canonical dotted keys, in order; both spellings of a key are G05. A plain
/// value at a component's position gets ".name".
std::vector<FlatMember> flatten(const Node& node, const std::string& prefix, const Mark& mark,
                                Findings& findings);

/// flatten() as settings of a layer; `node` must outlive them.
Settings settings_of(const Node& node, const std::string& prefix, const Mark& mark, Layer layer,
                     Findings& findings);

/// Loads a file with what it extends: base files first, maps merged, lists replaced, null removes.
Node load_layers(const std::filesystem::path& file, Study& study, Findings& findings);

/// Replaces ${env:NAME} in the values of the tree; only names of `env:` (G10).
void fill_environment(Node& root, Findings& findings);

}  // namespace assay::grid
