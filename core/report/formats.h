// Formats: pure functions from the model to text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/report/model.h"

namespace assay::report {

struct TerminalStyle {
  int width = 100;  ///< columns; key columns are left out when the table would be wider
  bool color = false;
};

/// The table of `assay compare`: rows, reasons, what differs, footnotes, sentence, next command.
std::string terminal(const Model& model, const TerminalStyle& style = {});
/// Fits a pull request comment (under 65,000 characters, then cut with a count).
std::string markdown(const Model& model);
/// One row per run, values in full precision, empty = unmeasured.
std::string csv(const Model& model);
/// schema_version 1; a non-finite number is {"value":null,"nonfinite":"nan"}.
nlohmann::json json(const Model& model);

}  // namespace assay::report
