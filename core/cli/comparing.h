// What run, resume, compare and gate share: comparisons planned, linted, run and judged.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/cli/context.h"
#include "core/cli/supervise.h"
#include "core/evidence/verdict.h"
#include "core/host/comparisons.h"

namespace assay::cli {

/// Throws DiagnosticError with every finding of the linter that no design allows, before anything
/// is run, at its place in the study; prints those that are allowed as warnings.
void require_fair(const store::Reader& reader, const store::StudyInfo& study,
                  const std::vector<host::ComparisonPlan>& comparisons, const Context& context);

/// Plans the pairs that are missing, on this machine.
void schedule(store::Store& store, int64_t study_id,
              const std::vector<host::ComparisonPlan>& comparisons, int stage = 1);

/// Judges what is there.
std::vector<evidence::Comparison> judge(const store::Reader& reader, int64_t study_id,
                                        const std::vector<host::ComparisonPlan>& comparisons);

/// Stores pairs, verdicts and findings of comparisons that have rows.
void keep(store::Store& store, const std::vector<evidence::Comparison>& judged);

/// "compare" of a stored study; null without one.
nlohmann::json compare_section(const std::string& resolved_json);

/// True when something that was asked for has no answer.
bool any_unresolved(const std::vector<evidence::Comparison>& comparisons);

/// Prints the verdicts of the study's declared comparisons, if it has any with rows.
void print_declared(store::Store& store, int64_t study_id, const std::string& study,
                    const Context& context);

}  // namespace assay::cli
