// Svg: the few marks that charts are made of. Looks come from classes of the page's style sheet.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace assay::report {

struct Point {
  double x = 0, y = 0;
};

/// Text that is safe inside an element or an attribute; control characters become spaces.
std::string xml_escaped(std::string_view text);

/// Width of a text in the page's font, in units of its size; good to a tenth.
double text_width(std::string_view text, double size);

/// `text` cut in its middle with "…" so that it is no wider than `width`.
std::string fitted(std::string_view text, double width, double size);

enum class Anchor { start, middle, end };

/// Marks in drawing order. `title`, where given, is what a pointer shows over the mark.
class Svg {
 public:
  /// A picture of `width` x `height` units that scales to its column. `label` is read to those who
  /// do not see it.
  Svg(double width, double height, std::string_view label);

  void line(Point a, Point b, std::string_view cls);
  void rect(Point corner, double width, double height, std::string_view cls,
            std::string_view title = {});
  void circle(Point center, double radius, std::string_view cls, std::string_view title = {});
  void cross(Point center, double radius, std::string_view cls, std::string_view title = {});
  void path(std::span<const Point> points, std::string_view cls, std::string_view title = {});
  /// The area between two curves over the same x.
  void area(std::span<const Point> upper, std::span<const Point> lower, std::string_view cls);
  void text(Point at, std::string_view text, std::string_view cls, Anchor anchor = Anchor::start,
            std::string_view title = {});
  /// Marks until close_clip() are cut to this rectangle.
  void open_clip(Point corner, double width, double height);
  void close_clip();

  std::string str() const;

 private:
  void mark(std::string_view start, std::string_view title, std::string_view name);

  std::string body_;
};

}  // namespace assay::report
