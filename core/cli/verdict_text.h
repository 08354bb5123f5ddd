// Verdicts as a terminal shows them, and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/evidence/verdict.h"

namespace assay::cli {

/// "-4.49 % [-4.70, -4.28]", "+0.0002 nat [-0.0002, +0.0006]", "-" without an estimate.
std::string change_text(const evidence::Verdict& verdict);

/// What a verdict rests on: "n 19 pairs, p 1.9e-06, MDE 1.1 %", "5 seeds, margin 0.0015 nat".
std::string evidence_text(const evidence::Verdict& verdict);

/// One table per comparison, with its tier and why, lint labels, and what is not settled with the
/// further pairs or seeds it would need. `command` is printed where pairs are missing.
std::string verdict_text(const std::vector<evidence::Comparison>& comparisons,
                         const std::string& command);

nlohmann::json verdict_json(const std::vector<evidence::Comparison>& comparisons);

}  // namespace assay::cli
