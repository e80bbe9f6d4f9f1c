#include "carnot/chart/svg.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "carnot/base/check.h"
#include "carnot/base/utf8.h"

namespace carnot {
namespace {

/// At most two decimals: a hundredth of a pixel.
std::string pixels(double value) {
  CARNOT_CHECK(std::isfinite(value), "a position on the page");
  std::array<char, 400> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 2);
  std::string written(text.data(), end.ptr);
  written.erase(written.find_last_not_of('0') + 1);
  if (written.back() == '.') written.pop_back();
  return written == "-0" ? "0" : written;
}

std::string attribute(std::string_view name, double value) {
  return ' ' + std::string(name) + "=\"" + pixels(value) + '"';
}

std::string attribute(std::string_view name, std::string_view value) {
  return ' ' + std::string(name) + "=\"" + escaped(value) + '"';
}

std::string stroke_attributes(const Stroke& stroke) {
  std::string text = attribute("stroke", stroke.colour) + attribute("stroke-width", stroke.width);
  if (!stroke.dashes.empty()) text += attribute("stroke-dasharray", stroke.dashes);
  return text;
}

std::string fill_attributes(const std::string& colour, double opacity) {
  std::string text = attribute("fill", colour);
  if (opacity < 1) text += attribute("fill-opacity", opacity);
  return text;
}

std::string points_attribute(std::span<const Point> points) {
  std::string text;
  for (const Point& point : points) {
    if (!text.empty()) text += ' ';
    text += pixels(point.x) + ',' + pixels(point.y);
  }
  return attribute("points", text);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
    if (is_control) continue;
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

double text_width(std::string_view text, double size) {
  return 0.56 * size * static_cast<double>(count_characters(text));
}

Drawing::Drawing(double width, double height, std::string_view label) {
  text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + pixels(width) + ' ' + pixels(height) + '"' +
          attribute("width", width) + attribute("height", height) + attribute("role", "img") +
          attribute("aria-label", label) + attribute("font-family", "system-ui, sans-serif") + ">\n";
  rectangle({0, 0}, width, height, "#fff");
}

void Drawing::line(Point from, Point to, const Stroke& stroke) {
  text_ += "<line" + attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) + attribute("y2", to.y) +
           stroke_attributes(stroke) + "/>\n";
}

void Drawing::path(std::span<const Point> points, const Stroke& stroke) {
  text_ += "<polyline" + attribute("fill", "none") + attribute("stroke-linejoin", "round") + stroke_attributes(stroke) +
           points_attribute(points) + "/>\n";
}

void Drawing::area(std::span<const Point> corners, const std::string& colour, double opacity) {
  text_ += "<polygon" + fill_attributes(colour, opacity) + points_attribute(corners) + "/>\n";
}

void Drawing::rectangle(Point corner, double width, double height, const std::string& colour, double opacity) {
  text_ += "<rect" + attribute("x", corner.x) + attribute("y", corner.y) + attribute("width", width) +
           attribute("height", height) + fill_attributes(colour, opacity) + "/>\n";
}

void Drawing::circle(Point centre, double radius, const std::string& colour, double opacity) {
  text_ += "<circle" + attribute("cx", centre.x) + attribute("cy", centre.y) + attribute("r", radius) +
           fill_attributes(colour, opacity) + "/>\n";
}

void Drawing::text(Point at, std::string_view words, const TextStyle& style) {
  text_ += "<text" + attribute("x", at.x) + attribute("y", at.y) + attribute("font-size", style.size) +
           attribute("text-anchor", style.anchor) + attribute("fill", style.colour);
  if (style.bold) text_ += attribute("font-weight", "600");
  if (style.turned != 0)
    text_ += attribute("transform", "rotate(" + pixels(style.turned) + ' ' + pixels(at.x) + ' ' + pixels(at.y) + ')');
  text_ += '>' + escaped(words) + "</text>\n";
}

void Drawing::begin_hint(std::string_view words) { text_ += "<g><title>" + escaped(words) + "</title>\n"; }

void Drawing::end_hint() { text_ += "</g>\n"; }

const std::string& colour_of(std::size_t series) {
  // Paul Tol's and Tableau's hues, dark enough for thin lines on white.
  static const std::array<std::string, 10> kColours = {"#1f5fa8", "#d1495b", "#2a8f5b", "#e08e1b", "#7a4fb5",
                                                       "#8a5a44", "#c94f9c", "#5f6b76", "#9a9a1f", "#1f9fb5"};
  return kColours[series % kColours.size()];
}

std::string dashes_of(std::size_t series) {
  static const std::array<std::string, 3> kDashes = {"", "7 3", "2 3"};
  return kDashes[series / 10 % kDashes.size()];
}

}  // namespace carnot
