// Source: the text of a YAML file, places in it, and the errors found so far.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"

namespace assay::grid {

/// One file as read, or the command line.
struct Source {
  std::string name;              ///< as messages print it
  std::filesystem::path folder;  ///< that its relative paths start from
  std::vector<std::string> lines;

  static std::shared_ptr<const Source> make(std::string name, std::filesystem::path folder,
                                            std::string_view text);
};

/// A place in a source: 1-based, columns in code points. Without a source: the command line.
struct Mark {
  const Source* source = nullptr;
  int line = 0;
  int column = 0;
  int length = 1;

  std::string place() const;     ///< "layouts.yaml:8:5"
  std::string position() const;  ///< "8:5"
  auto operator<=>(const Mark&) const = default;
};

int code_points(std::string_view text);

/// Byte offset in `line` of a column.
size_t byte_offset(std::string_view line, int column);

/// Collects errors, so that all of a file are shown at once.
class Findings {
 public:
  /// The same text at the same place is kept once.
  Diagnostic& error(const std::string& id, const Mark& mark, const std::string& text,
                    std::vector<std::string> hints = {});
  Diagnostic& add(Diagnostic diagnostic);
  bool empty() const { return diagnostics_.empty(); }
  size_t size() const { return diagnostics_.size(); }

  /// Throws DiagnosticError with the errors in the order of their places.
  void throw_if_any();

 private:
  std::vector<Diagnostic> diagnostics_;
  std::set<std::string> seen_;
  Diagnostic repeated_;
};

Diagnostic make_diagnostic(Severity severity, const std::string& id, const Mark& mark,
                           const std::string& text, std::vector<std::string> hints = {});

}  // namespace assay::grid
