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
inline constexpr size_t kLongestComment = 65000;  ///< characters of a pull request comment
/// Shorter than `longest`: what would not fit is cut at a line, with a count.
std::string markdown(const Model& model, size_t longest = kLongestComment);
/// One row per run, values in full precision, empty = unmeasured.
std::string csv(const Model& model);
/// One file with its pictures as inline SVG; needs no network and no script.
std::string html(const Model& model);
/// schema_version 1; a non-finite number is {"value":null,"nonfinite":"nan"}.
nlohmann::json json(const Model& model);
/// A test case per run and one per verdict: a regression is a failure, an open verdict and what did
/// not run are skipped, trouble of the machine is an error.
std::string junit(const Model& model);

/// For the file that GITHUB_STEP_SUMMARY names: below 1 MiB.
std::string github_summary(const Model& model);
/// At most 10 lines "::error::..." and "::warning::..." for a job's output.
std::vector<std::string> github_annotations(const Model& model);

/// A file of a format that is a folder.
struct ReportFile {
  std::string path{};  ///< relative, with '/'; one that ends with it is an empty folder
  std::string content{};
};
/// One event file per run: "<cell>/run<id>/events.out.tfevents.<s>.<host>".
std::vector<ReportFile> tensorboard(const Model& model);
/// The content of mlruns/. `folder`: where it will lie, as MLflow wants to know.
std::vector<ReportFile> mlflow(const Model& model, const std::string& folder);

}  // namespace assay::report
