// Places in files and the collection of errors.
#include "core/grid/source.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace assay::grid {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::shared_ptr<const Source> Source::make(std::string name, std::filesystem::path folder,
                                           std::string_view text) {
  auto source = std::make_shared<Source>();
  source->name = std::move(name);
  source->folder = std::move(folder);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    source->lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return source;
}

std::string Mark::place() const {
  if (!source) return "command line";
  return line > 0 ? source->name + ":" + position() : source->name;
}

std::string Mark::position() const { return std::to_string(line) + ":" + std::to_string(column); }

int code_points(std::string_view text) {
  return static_cast<int>(text.size() - std::count_if(text.begin(), text.end(), continues));
}

size_t byte_offset(std::string_view line, int column) {
  size_t at = 0;
  for (int c = 1; c < column && at < line.size(); ++c) {
    do ++at;
    while (at < line.size() && continues(line[at]));
  }
  return at;
}

Diagnostic make_diagnostic(Severity severity, const std::string& id, const Mark& mark,
                           const std::string& text, std::vector<std::string> hints) {
  Diagnostic d{.severity = severity, .id = id, .place = mark.place(), .text = text};
  d.hints = std::move(hints);
  if (!mark.source || mark.line < 1) return d;
  if (mark.line <= static_cast<int>(mark.source->lines.size())) {
    d.source_line = mark.source->lines[mark.line - 1];
    d.line = mark.line;
    d.column = mark.column;
    d.length = mark.length;
  }
  return d;
}

Diagnostic& Findings::error(const std::string& id, const Mark& mark, const std::string& text,
                            std::vector<std::string> hints) {
  return add(make_diagnostic(Severity::error, id, mark, text, std::move(hints)));
}

Diagnostic& Findings::add(Diagnostic diagnostic) {
  if (!seen_.insert(diagnostic.place + "\n" + diagnostic.text).second) return repeated_;
  diagnostics_.push_back(std::move(diagnostic));
  return diagnostics_.back();
}

void Findings::throw_if_any() {
  if (diagnostics_.empty()) return;
  std::vector<std::string> files;  // they stay in the order of reading
  const auto rank = [&](const Diagnostic& d) {
    const std::string file = d.place.substr(0, d.place.find(':'));
    const auto found = std::find(files.begin(), files.end(), file);
    const auto index = found - files.begin();
    if (found == files.end()) files.push_back(file);
    return index;
  };
  for (const Diagnostic& d : diagnostics_) rank(d);
  std::stable_sort(diagnostics_.begin(), diagnostics_.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) {
                     return std::make_tuple(rank(a), a.line, a.column) <
                            std::make_tuple(rank(b), b.line, b.column);
                   });
  throw DiagnosticError(std::exchange(diagnostics_, {}));
}

}  // namespace assay::grid
