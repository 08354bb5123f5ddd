// The form of `compare:`: its arms, and the checks that need no statistics.
#pragma once

#include <optional>

#include "core/grid/node.h"

namespace assay::grid {

/// Baseline and candidates as variants {label, set}; nothing if the study compares no such arms.
std::optional<Node> compared_arms(const Node& root);

/// `compare.loss.seeds`, which are the study's seeds unless it names its own; null without.
const Node* compared_seeds(const Node& root);

/// G04, G13, G14 and G15 of `compare:`.
void check_compare(const Node& root, Findings& findings);

}  // namespace assay::grid
