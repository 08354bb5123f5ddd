// Repairs of yaml-cpp 0.7's positions and messages.
#include "core/grid/yaml_text.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace assay::grid {
namespace {

/// Bytes of the UTF-8 sequence at the front of `text`, 0 if it is none.
size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xC2 ? 0
                        : lead < 0xE0 ? 2
                        : lead < 0xF0 ? 3
                        : lead < 0xF5 ? 4
                                      : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r';
}

/// The innermost bracket still open at byte `end`, and whether it opens a `${...}`.
struct OpenBracket {
  size_t at = 0;
  char bracket = 0;
};

std::optional<OpenBracket> last_open(std::string_view text, size_t end) {
  std::vector<OpenBracket> open;
  char quote = 0;
  for (size_t i = 0; i < std::min(end, text.size()); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      if (i == 0 || std::string_view(" \n\t[{,:").find(text[i - 1]) != text.npos) quote = c;
    } else if (c == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n')) {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '[' || c == '{') {
      open.push_back({i, c});
    } else if ((c == ']' || c == '}') && !open.empty()) {
      open.pop_back();
    }
  }
  return open.empty() ? std::nullopt : std::optional(open.back());
}

size_t offset_of(const Source& source, int line, int column_bytes) {
  size_t offset = 0;
  for (int i = 0; i < line && i < static_cast<int>(source.lines.size()); ++i) {
    offset += source.lines[i].size() + 1;
  }
  return offset + column_bytes;
}

Mark mark_at(std::string_view text, const Source& source, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  const size_t start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  return mark_in(source, line, static_cast<int>(offset - start));
}

}  // namespace

Mark mark_in(const Source& source, int line, int column_bytes) {
  Mark mark{.source = &source, .line = line + 1, .column = column_bytes + 1};
  if (line >= 0 && line < static_cast<int>(source.lines.size())) {
    const std::string_view before(source.lines[line]);
    mark.column = code_points(before.substr(0, std::max(0, column_bytes))) + 1;
  }
  return mark;
}

Mark skip_properties(Mark mark) {
  if (!mark.source || mark.line > static_cast<int>(mark.source->lines.size())) return mark;
  const std::string_view line(mark.source->lines[mark.line - 1]);
  std::string_view rest = line.substr(byte_offset(line, mark.column));
  while (!rest.empty() && (rest[0] == '&' || rest[0] == '!')) {
    const size_t space = rest.find(' ');
    const size_t next = space == rest.npos ? rest.npos : rest.find_first_not_of(' ', space);
    if (next == rest.npos) return mark;  // the value stands on a later line
    mark.column += code_points(rest.substr(0, next));
    rest.remove_prefix(next);
  }
  return mark;
}

int scalar_length(const Source& source, const Mark& mark, const Node& scalar) {
  if (mark.line < 1 || mark.line > static_cast<int>(source.lines.size())) return 1;
  const std::string_view line(source.lines[mark.line - 1]);
  const std::string_view rest = line.substr(byte_offset(line, mark.column));
  if (!scalar.quoted) return std::max(1, code_points(rest.substr(0, scalar.text.size())));
  if (rest.empty() || (rest[0] != '\'' && rest[0] != '"')) return 1;
  const size_t end = rest.find(rest[0], 1);
  return code_points(rest.substr(0, end == rest.npos ? rest.size() : end + 1));
}

bool check_utf8(std::string_view text, const Source& source, Findings& findings) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text.substr(at));
    if (length == 0 || is_control(text[at])) {
      findings.error("G02", {.source = &source},
                     "byte " + std::to_string(at) + " is no readable text; a study is UTF-8 YAML");
      return false;
    }
    at += length;
  }
  return true;
}

void report_syntax(std::string_view text, const Source& source, int line, int column_bytes,
                   const std::string& message, Findings& findings) {
  std::string what = message;
  std::vector<std::string> hints;
  const Mark mark = mark_in(source, std::max(line, 0), std::max(column_bytes, 0));
  const size_t offset = offset_of(source, line, column_bytes);
  if (message.find("flow") != message.npos || message.find("end of ") != message.npos) {
    if (const auto open = last_open(text, offset)) {
      what += std::string("; '") + open->bracket + "' was opened at " +
              mark_at(text, source, open->at).position();
    }
  }
  const size_t start = offset_of(source, line, 0);
  if (start < text.size() &&
      text.substr(start, text.find('\n', start) - start).find("${") != text.npos) {
    hints.push_back("quote it: \"${...}\" inside { } or [ ] needs quotation marks");
  }
  if (start < text.size() && text[start] == '\t') hints.push_back("indent with spaces, not tabs");
  findings.error("G02", mark, what, hints);
}

}  // namespace assay::grid
