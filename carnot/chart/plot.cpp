#include "carnot/chart/plot.h"

#include <algorithm>
#include <cmath>

#include "carnot/base/check.h"

namespace carnot {
namespace {

struct Canvas {
  Drawing& drawing;
  const Scale& x;
  const Scale& y;

  /// A little beyond the axes counts as inside, so that marks on an end are whole.
  bool holds(double px, double py) const {
    return std::isfinite(px) && std::isfinite(py) && px >= x.low() && px <= x.high();
  }
  /// Vertically, what lies outside is drawn at the edge: a curve leaves the plot and comes back.
  Point at(double px, double py) const { return {x(px), y(std::clamp(py, y.low(), y.high()))}; }
};

std::size_t colour_number(const Series& series, std::size_t place) {
  return series.colour >= 0 ? static_cast<std::size_t>(series.colour) : place;
}

void check(const Series& series) {
  CARNOT_CHECK_EQ(series.x.size(), series.y.size() + (series.draw == Draw::Steps ? 1 : 0));
  CARNOT_CHECK_EQ(series.low.size(), series.high.size());
  if (!series.low.empty()) CARNOT_CHECK_EQ(series.low.size(), series.y.size());
}

void draw_band(const Canvas& canvas, const Series& series, const std::string& colour) {
  std::vector<Point> upper, lower;
  const auto flush = [&] {
    upper.insert(upper.end(), lower.rbegin(), lower.rend());
    if (upper.size() > 2) canvas.drawing.area(upper, colour, 0.15);
    upper.clear();
    lower.clear();
  };
  for (std::size_t i = 0; i < series.low.size(); ++i) {
    if (!canvas.holds(series.x[i], series.low[i]) || !canvas.holds(series.x[i], series.high[i])) {
      flush();
      continue;
    }
    upper.push_back(canvas.at(series.x[i], series.high[i]));
    lower.push_back(canvas.at(series.x[i], series.low[i]));
  }
  flush();
}

void draw_line(const Canvas& canvas, const Series& series, std::size_t number) {
  const std::string& colour = colour_of(number);
  std::vector<Point> piece;
  const auto flush = [&] {
    if (piece.size() == 1) canvas.drawing.circle(piece[0], series.width + 0.5, colour);
    if (piece.size() > 1)
      canvas.drawing.path(piece, {.colour = colour, .width = series.width, .dashes = dashes_of(number)});
    piece.clear();
  };
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    if (canvas.holds(series.x[i], series.y[i])) {
      piece.push_back(canvas.at(series.x[i], series.y[i]));
    } else {
      flush();
    }
  }
  flush();
}

void draw_points(const Canvas& canvas, const Series& series, const std::string& colour) {
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const bool inside =
        canvas.holds(series.x[i], series.y[i]) && series.y[i] >= canvas.y.low() && series.y[i] <= canvas.y.high();
    if (inside) canvas.drawing.circle(canvas.at(series.x[i], series.y[i]), series.width, colour, series.opacity);
  }
}

void draw_steps(const Canvas& canvas, const Series& series, std::size_t number) {
  const double floor = std::max(0.0, canvas.y.low());
  std::vector<Point> outline;
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    if (!canvas.holds(series.x[i], series.y[i]) || !canvas.holds(series.x[i + 1], series.y[i])) continue;
    if (outline.empty()) outline.push_back(canvas.at(series.x[i], floor));
    outline.push_back(canvas.at(series.x[i], series.y[i]));
    outline.push_back(canvas.at(series.x[i + 1], series.y[i]));
  }
  if (outline.empty()) return;
  outline.push_back({outline.back().x, canvas.y(floor)});
  canvas.drawing.area(outline, colour_of(number), 0.18);
  canvas.drawing.path(outline, {.colour = colour_of(number), .width = 1.5, .dashes = dashes_of(number)});
}

void draw_series(const Canvas& canvas, const Series& series, std::size_t number) {
  switch (series.draw) {
    case Draw::Line: draw_line(canvas, series, number); return;
    case Draw::Points: draw_points(canvas, series, colour_of(number)); return;
    case Draw::Steps: draw_steps(canvas, series, number); return;
  }
}

std::vector<LegendEntry> legend_of(const Plot& plot) {
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const Series& series = plot.series[i];
    if (series.name.empty()) continue;
    const std::size_t number = colour_number(series, i);
    const auto mark = series.draw == Draw::Line     ? LegendEntry::Mark::Line
                      : series.draw == Draw::Points ? LegendEntry::Mark::Point
                                                    : LegendEntry::Mark::Box;
    legend.push_back({.name = series.name, .mark = mark, .colour = colour_of(number), .dashes = dashes_of(number)});
  }
  return legend.size() > 1 ? legend : std::vector<LegendEntry>{};
}

}  // namespace

std::string svg(const Plot& plot) {
  std::optional<Extent> x_extent, y_extent;
  for (const Series& series : plot.series) {
    check(series);
    x_extent = joined(x_extent, extent_of(series.x));
    for (const auto* values : {&series.y, &series.low, &series.high}) y_extent = joined(y_extent, extent_of(*values));
    if (series.draw == Draw::Steps) y_extent = joined(y_extent, Extent{0, 0});
  }
  Axis x_axis = plot.x;
  // A horizontal axis ends where its data do.
  if (x_extent && x_extent->low < x_extent->high) {
    if (!x_axis.low) x_axis.low = x_extent->low;
    if (!x_axis.high) x_axis.high = x_extent->high;
  }
  const auto legend = legend_of(plot);
  const PlotArea height = plot_area(plot.size, 0, legend);
  const Scale y(plot.y, y_extent, height.bottom, height.top);
  const PlotArea area = plot_area(plot.size, left_margin(tick_labels(y.ticks(), plot.y.percent), plot.y.label), legend);
  const Scale x(x_axis, x_extent, area.left, area.right);

  Drawing drawing(plot.size.width, plot.size.height, plot.title);
  draw_title(drawing, plot.size, plot.title);
  draw_vertical_axis(drawing, area, y, plot.y);
  draw_horizontal_axis(drawing, area, x, plot.x);
  const Canvas canvas{drawing, x, y};
  for (std::size_t i = 0; i < plot.series.size(); ++i)
    draw_band(canvas, plot.series[i], colour_of(colour_number(plot.series[i], i)));
  for (std::size_t i = 0; i < plot.series.size(); ++i)
    draw_series(canvas, plot.series[i], colour_number(plot.series[i], i));
  if (!x_extent || !y_extent) draw_no_data(drawing, area);
  draw_legend(drawing, area, legend);
  return drawing.svg();
}

Series histogram(std::string name, std::span<const double> values, double low, double high, int bins) {
  CARNOT_CHECK_LT(low, high);
  CARNOT_CHECK_GE(bins, 1);
  Series series{.name = std::move(name), .y = std::vector<double>(bins, 0.0), .draw = Draw::Steps};
  for (int i = 0; i <= bins; ++i) series.x.push_back(low + (high - low) * i / bins);
  double counted = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    counted += 1;
    if (value < low || value > high) continue;
    const auto bin = static_cast<int>((value - low) / (high - low) * bins);
    series.y[std::min(bin, bins - 1)] += 1;
  }
  for (double& share : series.y) share /= std::max(1.0, counted);
  return series;
}

std::vector<double> smoothed(std::span<const double> values, int window) {
  CARNOT_CHECK_GE(window, 1);
  const auto size = static_cast<std::ptrdiff_t>(values.size());
  const std::ptrdiff_t back = window / 2, ahead = window - 1 - back;
  std::vector<double> out;
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    double sum = 0, count = 0;
    for (std::ptrdiff_t k = std::max<std::ptrdiff_t>(0, i - back); k <= std::min(size - 1, i + ahead); ++k) {
      const double value = values[k];
      if (!std::isfinite(value)) continue;
      sum += value;
      count += 1;
    }
    out.push_back(count > 0 ? sum / count : std::nan(""));
  }
  return out;
}

}  // namespace carnot
