// The grid picture of a schedule: letters and numbers, with or without colour.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/cli/schedule_view.h"

namespace assay::cli {
namespace {

constexpr int64_t kMostColumns = 2000;  // nobody reads a picture of more
constexpr int64_t kRulerStep = 5;       // columns between two times of the ruler
constexpr const char* kPlain = "\x1b[0m";

/// Background of a unit: one colour per kind, darker for every second chunk of a rank.
const char* background(const ScheduleView& view, std::span<const Action> unit) {
  constexpr std::array kBright = {"\x1b[30;104m", "\x1b[30;102m", "\x1b[30;106m", "\x1b[30;103m",
                                  "\x1b[30;105m"};
  constexpr std::array kDark = {"\x1b[97;44m", "\x1b[97;42m", "\x1b[97;46m", "\x1b[97;43m",
                                "\x1b[97;45m"};
  constexpr size_t kPair = 4;
  const size_t kind = unit.size() == 2 ? kPair : static_cast<size_t>(unit.front().kind);
  return chunk_of(view, unit.front().stage) % 2 == 0 ? kBright[kind] : kDark[kind];
}

/// What stands at columns [first, end) of a rank's row.
struct Cell {
  int64_t first, end;
  std::string label;
  const char* color;
};

/// Time of one column: the greatest common measure of the times, unless that is very fine.
double column_time(const ChunkTimes& times) {
  constexpr double kDigits = 6;
  const std::array parts = {times.forward, times.input, times.weight, times.pair()};
  const double least = *std::min_element(parts.begin(), parts.end());
  const double finest = std::pow(10, std::floor(std::log10(least)) - kDigits);
  int64_t common = 0;
  for (const double part : parts) common = std::gcd(common, std::llround(part / finest));
  const double measure = static_cast<double>(common) * finest;
  return measure >= least / 4 ? measure : least / 2;
}

class Picture {
 public:
  Picture(const ScheduleView& view, const PictureStyle& style)
      : view_(view), style_(style), unit_(column_time(view.times)) {
    columns_ = std::llround(std::min(std::ceil(view.line.makespan / unit_), 1e15));
    const std::string last_rank = fmt::format("rank {}", view.lists.size() - 1);
    margin_ = last_rank.size() + 2;
  }

  std::string text() {
    if (columns_ > kMostColumns) {
      return fmt::format("(no picture: it would have {} columns; --svg FILE draws it)\n", columns_);
    }
    for (size_t rank = 0; rank < view_.lists.size(); ++rank) rows_.push_back(cells(rank));
    const int64_t room = std::max<int64_t>(
        (style_.width - static_cast<int64_t>(margin_)) / cell_width_, 2 * kRulerStep);
    const int64_t bands = (columns_ + room - 1) / room;
    const int64_t each = (columns_ + bands - 1) / bands;
    std::string out;
    for (int64_t begin = 0; begin < columns_; begin += each) {
      const int64_t end = std::min(begin + each, columns_);
      out += (begin > 0 ? "\n" : "") + ruler(begin, end);
      for (size_t rank = 0; rank < rows_.size(); ++rank) out += row(rank, begin, end);
    }
    return out;
  }

 private:
  int64_t column(double time) const { return std::llround(time / unit_); }

  std::vector<Cell> cells(size_t rank) {
    std::vector<Cell> cells;
    for (const Span& span : view_.line.ranks[rank]) {
      const auto unit = std::span(view_.lists[rank]).subspan(span.index, span.size);
      Cell cell{column(span.start), column(span.end), unit_label(view_, unit),
                background(view_, unit)};
      if (cell.end <= cell.first) continue;
      const int64_t length = cell.end - cell.first;
      const auto needed = static_cast<int64_t>(cell.label.size()) + 1;
      cell_width_ = std::max(cell_width_, (needed + length - 1) / length);
      cells.push_back(std::move(cell));
    }
    return cells;
  }

  std::string ruler(int64_t begin, int64_t end) const {
    std::string line = fmt::format("{:<{}}", "time", margin_);
    for (int64_t at = (begin + kRulerStep - 1) / kRulerStep * kRulerStep; at < end;
         at += kRulerStep) {
      line.resize(std::max(line.size(), margin_ + static_cast<size_t>((at - begin) * cell_width_)),
                  ' ');
      line += print_time(static_cast<double>(at) * unit_);
    }
    return line + "\n";
  }

  std::string row(size_t rank, int64_t begin, int64_t end) const {
    std::string line = fmt::format("{:<{}}", fmt::format("rank {}", rank), margin_);
    int64_t at = begin;
    for (const Cell& cell : rows_[rank]) {
      if (cell.end <= begin || cell.first >= end) continue;
      for (; at < cell.first; ++at) line += idle();
      const int64_t last = std::min(cell.end, end);
      line += block(cell, last - at, shows_label(cell, begin, end));
      at = last;
    }
    for (; at < end; ++at) line += idle();
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
  }

  std::string idle() const { return fmt::format("{:<{}}", ".", cell_width_); }

  /// A block cut by the end of a band shows its label once, where there is room.
  bool shows_label(const Cell& cell, int64_t begin, int64_t end) const {
    const auto fits = [&](int64_t columns) {
      return columns * cell_width_ > static_cast<int64_t>(cell.label.size());
    };
    if (cell.first >= begin) return fits(std::min(cell.end, end) - cell.first);
    return !fits(begin - cell.first);
  }

  /// The label, dashes up to the last column, a space.
  std::string block(const Cell& cell, int64_t columns, bool labelled) const {
    const auto size = static_cast<size_t>(columns * cell_width_);
    std::string text = labelled ? cell.label : "-";
    text.resize(size - 1, columns > 1 || !labelled ? '-' : ' ');
    return style_.color ? cell.color + text + kPlain + " " : text + " ";
  }

  const ScheduleView& view_;
  const PictureStyle style_;
  const double unit_;
  int64_t columns_ = 0;
  int64_t cell_width_ = 2;
  size_t margin_ = 0;
  std::vector<std::vector<Cell>> rows_{};
};

}  // namespace

std::string picture_text(const ScheduleView& view, const PictureStyle& style) {
  return Picture(view, style).text();
}

}  // namespace assay::cli
