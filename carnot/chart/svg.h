// chart/svg.h -- a drawing as SVG text: a few shapes, in the order they are drawn.
//
// The text is the same for the same calls on every machine. A drawing works as a .svg file and inside HTML.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// `text` for XML and HTML, inside elements and quoted attributes. Control characters other than line breaks and tabs,
/// which XML forbids, are left out. REQUIRES: UTF-8.
std::string escaped(std::string_view text);

/// Pixels, from the upper left corner.
struct Point {
  double x = 0;
  double y = 0;
};

struct Stroke {
  std::string colour = "#333";
  double width = 1;
  std::string dashes{};  ///< "6 3": lengths of strokes and gaps; empty: none
};

struct TextStyle {
  double size = 12;
  std::string anchor = "start";  ///< start | middle | end: which part of the text is at its point
  std::string colour = "#333";
  bool bold = false;
  double turned = 0;  ///< degrees, clockwise around its point
};

/// Width in pixels that text of this size takes, about.
double text_width(std::string_view text, double size);

class Drawing {
 public:
  /// `label` says what is to be seen, for those who cannot see it.
  Drawing(double width, double height, std::string_view label);

  void line(Point from, Point to, const Stroke& stroke);
  void path(std::span<const Point> points, const Stroke& stroke);
  void area(std::span<const Point> corners, const std::string& colour, double opacity);
  void rectangle(Point corner, double width, double height, const std::string& colour, double opacity = 1);
  void circle(Point centre, double radius, const std::string& colour, double opacity = 1);
  void text(Point at, std::string_view words, const TextStyle& style = {});

  /// What is drawn until end_hint() shows `words` where the mouse rests on it.
  void begin_hint(std::string_view words);
  void end_hint();

  /// The whole <svg> element.
  std::string svg() const { return text_ + "</svg>\n"; }

 private:
  std::string text_{};
};

/// The colour of the i-th series; colours repeat after ten, with dashes_of telling the repetitions apart.
const std::string& colour_of(std::size_t series);
std::string dashes_of(std::size_t series);

}  // namespace carnot
