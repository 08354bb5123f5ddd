// The table of `assay compare`. Columns are separated by two spaces; figures contain at most one.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/report/formats.h"

namespace assay::report {
namespace {

using Cells = std::vector<std::string>;

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kPlain = "\x1b[0m";
constexpr const char* kGap = "  ";

struct Grid {
  std::vector<Cells> lines{};  ///< the first is the header
  size_t left = 1;             ///< so many columns are aligned to the left, the rest to the right

  std::vector<size_t> widths() const {
    std::vector<size_t> result(lines.front().size(), 0);
    for (const Cells& line : lines) {
      for (size_t i = 0; i < line.size(); ++i) result[i] = std::max(result[i], line[i].size());
    }
    return result;
  }
  size_t width() const {
    size_t total = 0;
    for (const size_t w : widths()) total += w + 2;
    return total - 2;
  }
};

std::string state_text(const Row& row) {
  return row.footnote == 0 ? row.state : fmt::format("{} {})", row.state, row.footnote);
}

bool several_machines(const Model& model) {
  std::set<std::string> ids;
  for (const Row& row : model.rows) ids.insert(row.machine_id);
  return ids.size() > 1;
}

Cells header(const Model& model, size_t keys, bool machines) {
  Cells line = {"recipe"};
  if (machines) line.push_back("machine");
  line.insert(line.end(), model.keys.begin(),
              model.keys.begin() + static_cast<std::ptrdiff_t>(keys));
  for (const Column& column : model.columns) line.push_back(heading(column));
  line.push_back("state");
  return line;
}

Cells body(const Row& row, size_t keys, bool machines) {
  Cells line = {row.label + (row.baseline ? " *" : "")};
  if (machines) line.push_back(row.machine_id.substr(0, 12));
  line.insert(line.end(), row.keys.begin(), row.keys.begin() + static_cast<std::ptrdiff_t>(keys));
  for (const Figure& figure : row.figures) line.push_back(with_range(figure));
  line.push_back(state_text(row));
  return line;
}

Grid make_grid(const Model& model, size_t keys) {
  const bool machines = several_machines(model);
  Grid grid{.lines = {header(model, keys, machines)}, .left = 1 + keys + (machines ? 1 : 0)};
  for (const Row& row : model.rows) grid.lines.push_back(body(row, keys, machines));
  return grid;
}

/// As many key columns as fit; all of them are named below the table in any case.
Grid fitting_grid(const Model& model, int width) {
  for (size_t keys = model.keys.size(); keys > 0; --keys) {
    Grid grid = make_grid(model, keys);
    if (grid.width() <= static_cast<size_t>(width)) return grid;
  }
  return make_grid(model, 0);
}

std::string line_text(const Grid& grid, const Cells& cells, const std::vector<size_t>& widths) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool last = i + 1 == cells.size();
    const std::string pad(widths[i] - cells[i].size(), ' ');
    line += i < grid.left || last ? cells[i] + (last ? "" : pad) : pad + cells[i];
    if (!last) line += kGap;
  }
  return line;
}

/// Breaks a long line at spaces; the rest is indented.
std::string wrapped(const std::string& text, int width) {
  std::string out;
  size_t begin = 0;
  const auto room = [&] { return static_cast<size_t>(std::max(width, 40)) - (begin == 0 ? 0 : 2); };
  while (text.size() - begin > room()) {
    size_t end = text.rfind(' ', begin + room());
    if (end == std::string::npos || end <= begin)
      end = std::min(text.find(' ', begin), text.size());
    out += text.substr(begin, end - begin) + (end < text.size() ? "\n  " : "");
    begin = std::min(end + 1, text.size());
  }
  return out + text.substr(begin) + "\n";
}

bool failed(const Row& row) { return row.footnote != 0; }

}  // namespace

std::string terminal(const Model& model, const TerminalStyle& style) {
  std::string out = fmt::format("{}   {} runs   machine {}\n", model.study, model.runs.size(),
                                model.machine.empty() ? "none yet" : model.machine);
  if (!model.baseline.empty()) out += fmt::format("baseline {} *\n", model.baseline);
  out += "\n";
  const Grid grid = fitting_grid(model, style.width);
  const std::vector<size_t> widths = grid.widths();
  for (size_t i = 0; i < grid.lines.size(); ++i) {
    const std::string line = line_text(grid, grid.lines[i], widths);
    const char* color = i == 0 ? kBold : failed(model.rows[i - 1]) ? kRed : "";
    out += style.color && *color != '\0' ? color + line + kPlain : line;
    out += "\n";
  }
  for (size_t i = 0; i < model.reasons.size(); ++i) {
    out += wrapped(fmt::format("{}) {}", i + 1, model.reasons[i]), style.width);
  }
  out += "\n";
  for (const std::string& note : model.footnotes) out += wrapped(note, style.width);
  out += "\n" + wrapped(model.sentence, style.width) + wrapped(model.verdict, style.width);
  return out + fmt::format("for a verdict: {}\nnext: {}\n", model.verdict_command, model.next);
}

}  // namespace assay::report
