// Diagnostic: one frame for every message of assay (place, severity, id, text, source line, hint).
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "assay/api.h"

namespace assay {

enum class Severity { error, refused, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  std::string id{};     ///< "G04", "R-TPHEADS", "P01", "H01"
  std::string place{};  ///< "file.yaml:5:23", "command line", "run 17 rank 1"
  std::string text{};
  std::string source_line{};           ///< empty: no excerpt
  int line = 0;                        ///< 1-based
  int column = 0;                      ///< 1-based, in code points
  int length = 1;                      ///< of the caret
  std::vector<std::string> details{};  ///< indented lines below the head (P01's fields)
  std::vector<std::string> hints{};
};

/// The frame of docs: head line, excerpt with caret, details, hints; ends with a newline.
std::string render(const Diagnostic& diagnostic);

/// Renders all, at most `limit` of them, then a count of the others.
std::string render(const std::vector<Diagnostic>& diagnostics, size_t limit = 20);

/// Thrown when input is refused as a whole; the CLI prints it and exits with 2.
class ASSAY_API DiagnosticError : public std::runtime_error {
 public:
  explicit DiagnosticError(std::vector<Diagnostic> diagnostics);
  explicit DiagnosticError(Diagnostic diagnostic);
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace assay
