// Rendering of diagnostics: head, excerpt with caret, details, hints.
#include "core/base/diagnostic.h"

#include <algorithm>
#include <utility>

namespace assay {
namespace {

constexpr int kExcerptWidth = 160;  // code points; a longer line is shown around its caret
constexpr int kExcerptLead = 60;    // of them before the caret

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::refused:
      return "refused";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "";
}

/// UTF-8 split in code points; a stray byte counts as one.
std::vector<std::string> code_points(const std::string& text) {
  std::vector<std::string> points;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (continues && !points.empty()) {
      points.back() += c;
    } else {
      points.emplace_back(1, c);
    }
  }
  return points;
}

std::string excerpt(const Diagnostic& d) {
  const std::vector<std::string> points = code_points(d.source_line);
  const int size = static_cast<int>(points.size());
  const int column = std::clamp(d.column, 1, size + 1);
  const int first = size > kExcerptWidth ? std::max(0, column - 1 - kExcerptLead) : 0;
  const int end = std::min(size, first + kExcerptWidth);
  std::string number = std::to_string(d.line);
  number.insert(0, number.size() < 5 ? 5 - number.size() : 0, ' ');
  std::string text = number + " | ";
  for (int i = first; i < end; ++i) text += points[i];
  text += "\n" + std::string(number.size(), ' ') + " | ";
  for (int i = first; i < column - 1; ++i) text += points[i] == "\t" ? "\t" : " ";
  const int length = std::clamp(d.length, 1, std::max(1, end - column + 1));
  return text + "^" + std::string(length - 1, '~') + "\n";
}

std::string what_of(const std::vector<Diagnostic>& diagnostics) {
  std::string text = render(diagnostics);
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace

std::string render(const Diagnostic& d) {
  std::string text = d.place.empty() ? "" : d.place + ": ";
  text += name_of(d.severity);
  if (!d.id.empty()) text += "[" + d.id + "]";
  text += ": " + d.text + "\n";
  if (!d.source_line.empty()) text += excerpt(d);
  for (const std::string& detail : d.details) text += "  " + detail + "\n";
  for (const std::string& hint : d.hints) text += "  hint: " + hint + "\n";
  return text;
}

std::string render(const std::vector<Diagnostic>& diagnostics, size_t limit) {
  std::string text;
  const size_t shown = std::min(limit, diagnostics.size());
  for (size_t i = 0; i < shown; ++i) text += render(diagnostics[i]);
  const size_t rest = diagnostics.size() - shown;
  if (rest > 0) text += "... and " + std::to_string(rest) + " more\n";
  return text;
}

DiagnosticError::DiagnosticError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(what_of(diagnostics)), diagnostics_(std::move(diagnostics)) {}

DiagnosticError::DiagnosticError(Diagnostic diagnostic)
    : DiagnosticError(std::vector<Diagnostic>{std::move(diagnostic)}) {}

}  // namespace assay
