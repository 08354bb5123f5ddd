// Filter: --filter over the configurations that a database holds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/store/rows.h"

namespace assay::host {

/// A yes or no per run by an expression over its configuration keys ("optim.name == 'lion'").
/// Throws DiagnosticError for a mistake in it, and for a key that none of `configs` has (G04).
std::function<bool(const store::QueuedRun&)> run_filter(const std::string& expression,
                                                        const std::vector<std::string>& configs);

}  // namespace assay::host
