// Marks as text. Coordinates keep one decimal: a tenth of a unit is less than a pixel.
#include "core/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::report {
namespace {

/// Shortest text of a coordinate: "12", "12.5", "-.5".
std::string number(double value) {
  const double tenth = std::round(value * 10) / 10;
  return fmt::format("{}", tenth == 0 ? 0.0 : tenth);
}

/// Points as one absolute and many relative moves, which are short.
std::string moves(std::span<const Point> points) {
  std::string text;
  double x = 0, y = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const double to_x = std::round(points[i].x * 10) / 10, to_y = std::round(points[i].y * 10) / 10;
    text += (i == 0 ? "M" : i == 1 ? "l" : " ") + number(to_x - x) + "," + number(to_y - y);
    x = to_x;
    y = to_y;
  }
  return text;
}

std::string_view name_of(Anchor anchor) {
  return anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
}

/// Bytes that start a character of UTF-8.
bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  }
  return out;
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (const char c : text) {
    if (!starts_character(c)) continue;
    const bool narrow = std::string_view("ijl.,:;'|!()[] ftr-").find(c) != std::string_view::npos;
    const bool wide = std::string_view("mwMW@%").find(c) != std::string_view::npos || c < 0;
    width += narrow ? 0.42 : wide ? 1.0 : 0.67;
  }
  return width * size;
}

std::string fitted(std::string_view text, double width, double size) {
  if (text_width(text, size) <= width) return std::string(text);
  size_t head = text.size() / 2, tail = text.size() - head;
  while (head + tail > 2) {
    --(head > tail ? head : tail);
    while (head > 0 && !starts_character(text[head])) --head;
    while (tail > 0 && !starts_character(text[text.size() - tail])) --tail;
    const std::string cut =
        std::string(text.substr(0, head)) + "…" + std::string(text.substr(text.size() - tail));
    if (text_width(cut, size) <= width) return cut;
  }
  return "…";
}

Svg::Svg(double width, double height, std::string_view label)
    : body_(fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", number(width),
                        number(height), xml_escaped(label))) {}

void Svg::mark(std::string_view start, std::string_view title, std::string_view name) {
  body_ += start;
  if (title.empty()) {
    body_ += "/>";
  } else {
    body_ += fmt::format("><title>{}</title></{}>", xml_escaped(title), name);
  }
}

void Svg::line(Point a, Point b, std::string_view cls) {
  mark(fmt::format(R"(<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}")", cls, number(a.x),
                   number(a.y), number(b.x), number(b.y)),
       {}, "line");
}

void Svg::rect(Point corner, double width, double height, std::string_view cls,
               std::string_view title) {
  mark(
      fmt::format(R"(<rect class="{}" x="{}" y="{}" width="{}" height="{}")", cls, number(corner.x),
                  number(corner.y), number(std::max(width, 0.0)), number(std::max(height, 0.0))),
      title, "rect");
}

void Svg::circle(Point center, double radius, std::string_view cls, std::string_view title) {
  mark(fmt::format(R"(<circle class="{}" cx="{}" cy="{}" r="{}")", cls, number(center.x),
                   number(center.y), number(radius)),
       title, "circle");
}

void Svg::cross(Point c, double r, std::string_view cls, std::string_view title) {
  mark(fmt::format(R"(<path class="{}" d="M{},{}l{},{}m0,{}l{},{}")", cls, number(c.x - r),
                   number(c.y - r), number(2 * r), number(2 * r), number(-2 * r), number(-2 * r),
                   number(2 * r)),
       title, "path");
}

void Svg::path(std::span<const Point> points, std::string_view cls, std::string_view title) {
  if (points.empty()) return;
  mark(fmt::format(R"(<path class="{}" d="{}")", cls, moves(points)), title, "path");
}

void Svg::area(std::span<const Point> upper, std::span<const Point> lower, std::string_view cls) {
  std::vector<Point> ring(upper.begin(), upper.end());
  ring.insert(ring.end(), lower.rbegin(), lower.rend());
  if (ring.empty()) return;
  mark(fmt::format(R"(<path class="{}" d="{}z")", cls, moves(ring)), {}, "path");
}

void Svg::text(Point at, std::string_view text, std::string_view cls, Anchor anchor,
               std::string_view title) {
  body_ += fmt::format(R"(<text class="{}" x="{}" y="{}" text-anchor="{}">{})", cls, number(at.x),
                       number(at.y), name_of(anchor), xml_escaped(text));
  if (!title.empty()) body_ += fmt::format("<title>{}</title>", xml_escaped(title));
  body_ += "</text>";
}

void Svg::open_clip(Point corner, double width, double height) {
  body_ +=
      fmt::format(R"(<svg x="{0}" y="{1}" width="{2}" height="{3}" viewBox="{0} {1} {2} {3}">)",
                  number(corner.x), number(corner.y), number(width), number(height));
}

void Svg::close_clip() { body_ += "</svg>"; }

std::string Svg::str() const { return body_ + "</svg>"; }

}  // namespace assay::report
