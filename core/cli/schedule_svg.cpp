// The grid picture of a schedule as SVG: true to time, with a legend; each block tells its action.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/cli/schedule_view.h"

namespace assay::cli {
namespace {

// Dark and light pages and print share one file: colours follow the reader's scheme, and letters
// and numbers say without colour what a block is.
constexpr const char* kStyle = R"(<style>
  .page { fill: #ffffff } text { fill: #1f2328 } .quiet { fill: #57606a; font-size: 11px }
  .head { font-weight: 600; font-size: 15px } .grid { stroke: #d0d7de } .idle { fill: #f0f2f4 }
  .F { fill: #b6d4fe } .B { fill: #a7e3b5 } .I { fill: #a5e4e4 } .W { fill: #f7dc8b }
  .odd { stroke: #1f2328; stroke-width: 1.4 } .even { stroke: #8c959f; stroke-width: .6 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #e6edf3 } .quiet { fill: #9da7b1 }
    .grid { stroke: #30363d } .idle { fill: #161b22 }
    .F { fill: #1f4b8f } .B { fill: #1d6b35 } .I { fill: #12686b } .W { fill: #7a5a00 }
    .odd { stroke: #e6edf3 } .even { stroke: #6e7681 }
  }
  @media print {
    .page { fill: #ffffff } text, .quiet { fill: #000000 } .idle { fill: #ffffff }
    .F { fill: #dbe9ff } .B { fill: #d3f1da } .I { fill: #d2f1f1 } .W { fill: #fbeec5 }
    .odd { stroke: #000000 } .even { stroke: #57606a }
  }
</style>
)";

constexpr double kMargin = 64, kTop = 58, kRow = 28, kGap = 4, kLegend = 54, kRight = 16;
constexpr double kCharacter = 7.2;      // width of a digit at 12 px
constexpr double kLeastWidth = 520;     // room for the legend
constexpr double kMostWidth = 12000;    // of the time axis
constexpr double kRulerDistance = 110;  // at least, between two times of the ruler

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return out;
}

/// F, B, I or W: the class that colours a block.
char class_of(const Action& action) {
  constexpr std::array kLetters = {'F', 'B', 'I', 'W'};
  return kLetters[static_cast<size_t>(action.kind)];
}

class Drawing {
 public:
  explicit Drawing(const ScheduleView& view) : view_(view) {
    const double axis =
        std::min(std::max(widest_need() * view.line.makespan, kLeastWidth), kMostWidth);
    scale_ = axis / view.line.makespan;
    width_ = kMargin + axis + kRight;
    bottom_ = kTop + kRow * static_cast<double>(view.lists.size());
  }

  std::string text() {
    const std::string head = escaped(head_line(view_));
    out_ = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" )"
        R"(role="img" aria-labelledby="title description" font-family="system-ui, sans-serif" )"
        R"(font-size="12">)"
        "\n<title id=\"title\">{2}</title>\n<desc id=\"description\">{3}</desc>\n{4}"
        "<rect class=\"page\" width=\"{0:.0f}\" height=\"{1:.0f}\"/>\n"
        "<text x=\"12\" y=\"24\" class=\"head\">{2}</text>\n",
        width_, bottom_ + kLegend, head, description(), kStyle);
    ruler();
    for (size_t rank = 0; rank < view_.lists.size(); ++rank) row(rank);
    legend();
    return out_ + "</svg>\n";
  }

 private:
  /// Pixels per time that leave room for the longest label.
  double widest_need() const {
    double most = 0;
    for (size_t rank = 0; rank < view_.lists.size(); ++rank) {
      for (const Span& span : view_.line.ranks[rank]) {
        size_t length = 0;
        for (const Action& action : unit(rank, span)) {
          length = std::max(length, unit_label(view_, {&action, 1}).size());
        }
        most = std::max(most,
                        (static_cast<double>(length) * kCharacter + 8) / (span.end - span.start));
      }
    }
    return most;
  }

  std::span<const Action> unit(size_t rank, const Span& span) const {
    return std::span(view_.lists[rank]).subspan(span.index, span.size);
  }

  std::string description() const {
    return fmt::format(
        "One row per pipeline rank, time to the right. The step takes {}, of which {} are bubble; "
        "the most chunks in flight on a rank are {}.",
        print_time(view_.line.makespan), print_time(view_.line.bubble),
        *std::max_element(view_.line.peak_chunks.begin(), view_.line.peak_chunks.end()));
  }

  double x_of(double time) const { return kMargin + time * scale_; }

  void ruler() {
    double step = 1;  // 1, 2, 5, 10, 20, ...
    for (int i = 0; step * scale_ < kRulerDistance; ++i) step *= i % 3 == 1 ? 2.5 : 2;
    for (double time = 0; time <= view_.line.makespan; time += step) {
      out_ +=
          fmt::format(R"(<line class="grid" x1="{0:.1f}" y1="{1}" x2="{0:.1f}" y2="{2}"/>)"
                      R"(<text x="{0:.1f}" y="{3}" class="quiet" text-anchor="middle">{4}</text>)"
                      "\n",
                      x_of(time), kTop - 6, bottom_, kTop - 10, print_time(time));
    }
  }

  void row(size_t rank) {
    const double y = kTop + kRow * static_cast<double>(rank);
    out_ += fmt::format("<text x=\"12\" y=\"{}\">rank {}</text>\n", y + 17, rank);
    out_ += fmt::format("<rect class=\"idle\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>\n",
                        kMargin, y, view_.line.makespan * scale_, kRow - kGap);
    for (const Span& span : view_.line.ranks[rank]) {
      const std::span<const Action> actions = unit(rank, span);
      const double height = (kRow - kGap) / static_cast<double>(actions.size());
      for (size_t i = 0; i < actions.size(); ++i) {
        block(actions[i], span, y + height * static_cast<double>(i), height);
      }
    }
  }

  /// One action; the two of a pair share their time, one above the other.
  void block(const Action& action, const Span& span, double y, double height) {
    const double width = (span.end - span.start) * scale_;
    const std::string label = unit_label(view_, {&action, 1});
    out_ +=
        fmt::format(R"(<g><title>{}: {} to {}</title>)"
                    R"(<rect class="{} {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)",
                    print(action), print_time(span.start), print_time(span.end), class_of(action),
                    chunk_of(view_, action.stage) % 2 == 0 ? "even" : "odd", x_of(span.start), y,
                    width, height);
    const bool fits = static_cast<double>(label.size()) * kCharacter <= width;
    if (fits) {
      const double size = std::min(12.0, height - 1);
      out_ += fmt::format(
          R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle" font-size="{:.0f}">{}</text>)",
          x_of(span.start) + width / 2, y + height / 2 + size * 0.35, size, label);
    }
    out_ += "</g>\n";
  }

  void legend() {
    const double y = bottom_ + 12;
    double x = kMargin;
    const auto key = [&](const char* style, const std::string& text) {
      out_ += fmt::format(R"(<rect class="{}" x="{:.0f}" y="{:.0f}" width="14" height="14"/>)"
                          R"(<text x="{:.0f}" y="{:.0f}" class="quiet">{}</text>)"
                          "\n",
                          style, x, y, x + 20, y + 11, text);
      x += 34 + static_cast<double>(text.size()) * 6.0;
    };
    key("F even", "forward");
    const bool split = uses(ActionKind::backward_input);
    if (uses(ActionKind::backward)) key("B even", "backward");
    if (split) key("I even", "input gradient");
    if (split) key("W even", "weight gradient");
    if (view_.shape.chunks > 1) key("F odd", "every second stage of a rank");
    out_ += fmt::format(
        "<text x=\"{}\" y=\"{:.0f}\" class=\"quiet\">{}</text>\n", kMargin, y + 32,
        fmt::format("makespan {}, bubble {} ({:.1f} %)", print_time(view_.line.makespan),
                    print_time(view_.line.bubble), 100 * view_.line.bubble_share()));
  }

  bool uses(ActionKind kind) const {
    return std::any_of(view_.lists.begin(), view_.lists.end(), [kind](const ActionList& list) {
      return std::any_of(list.begin(), list.end(),
                         [kind](const Action& action) { return action.kind == kind; });
    });
  }

  const ScheduleView& view_;
  double scale_ = 1, width_ = 0, bottom_ = 0;
  std::string out_{};
};

}  // namespace

std::string picture_svg(const ScheduleView& view) { return Drawing(view).text(); }

}  // namespace assay::cli
