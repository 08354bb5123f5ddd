// What a GitHub job shows: the Markdown as its summary, the worst findings as annotations.
#include <fmt/format.h>

#include "core/report/formats.h"
#include "core/report/verdicts.h"

namespace assay::report {
namespace {

constexpr size_t kLongestSummary = (size_t{1} << 20) - 1;
constexpr size_t kMostAnnotations = 10;

/// Workflow commands end at a line end; '%' starts an escape.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '%')
      out += "%25";
    else if (c == '\r')
      out += "%0D";
    else if (c == '\n')
      out += "%0A";
    else
      out += c;
  }
  return out;
}

std::string annotation(const char* kind, const std::string& text) {
  return fmt::format("::{}::{}", kind, escaped(text));
}

bool is_regression(const std::string& verdict) {
  return verdict == "SLOWER" || verdict == "WORSE" || verdict == "NO_PARITY";
}

bool is_open(const std::string& verdict) {
  return verdict == "UNRESOLVED" || verdict == "NOT_SHOWN" || verdict == "INVALID";
}

/// Errors first, then warnings, each in the order of the report.
std::vector<std::string> all_annotations(const Model& model) {
  std::vector<std::string> errors, warnings;
  for (const VerdictRow& row : model.verdicts) {
    if (is_regression(row.verdict)) errors.push_back(annotation("error", verdict_sentence(row)));
    if (is_claim(row) && is_open(row.verdict))
      warnings.push_back(annotation("warning", verdict_sentence(row)));
  }
  for (const Row& row : model.rows) {
    if (row.footnote == 0) continue;
    const std::string& reason = model.reasons[static_cast<size_t>(row.footnote) - 1];
    const bool warning = reason.starts_with("OOM") || reason.starts_with("KILLED");
    (warning ? warnings : errors)
        .push_back(annotation(warning ? "warning" : "error", row.label + ": " + reason));
  }
  errors.insert(errors.end(), warnings.begin(), warnings.end());
  return errors;
}

}  // namespace

std::string github_summary(const Model& model) { return markdown(model, kLongestSummary); }

std::vector<std::string> github_annotations(const Model& model) {
  std::vector<std::string> lines = all_annotations(model);
  if (lines.size() <= kMostAnnotations) return lines;
  const size_t hidden = lines.size() - kMostAnnotations + 1;
  lines.resize(kMostAnnotations - 1);
  lines.push_back(annotation("warning", fmt::format("{} more are in the summary", hidden)));
  return lines;
}

}  // namespace assay::report
