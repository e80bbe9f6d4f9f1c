// chart/plot.h -- charts over two axes of numbers: curves with bands, points, histograms; in one plot if need be.
//
//   Plot plot{.title = "Success", .x = {.label = "step"}, .y = {.label = "success", .low = 0, .percent = true}};
//   plot.series.push_back({.name = "grpo", .x = steps, .y = mean, .low = low, .high = high});
//   write_file_atomically("success.svg", svg(plot));
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/chart/frame.h"

namespace carnot {

enum class Draw {
  Line,    ///< points joined by lines, in their order
  Points,  ///< a dot each
  Steps,   ///< columns: y[i] from x[i] to x[i + 1]; x has one value more than y
};

/// Values that are not finite leave a gap in a line and no dot.
struct Series {
  std::string name{};  ///< in the legend; empty: not there
  std::vector<double> x{};
  std::vector<double> y{};
  std::vector<double> low{};  ///< with `high`, a shaded band around a line; empty: none
  std::vector<double> high{};
  Draw draw = Draw::Line;
  int colour = -1;       ///< number of the colour; -1: that of the series' place in the plot
  double width = 2;      ///< of a line; radius of a dot
  double opacity = 0.7;  ///< of dots
};

struct Plot {
  std::string title{};
  Axis x{};
  Axis y{};
  std::vector<Series> series{};
  ChartSize size{};
};

/// The <svg> element. What lies outside the axes' own ends is cut off. There is a legend if two series have
/// names. REQUIRES: each series' vectors match in size.
std::string svg(const Plot& plot);

/// The share of the finite `values` in each of `bins` equal bins over [low, high], as Steps. Values outside are counted
/// in the shares' denominator alone. REQUIRES: low < high, bins >= 1.
Series histogram(std::string name, std::span<const double> values, double low, double high, int bins);

/// Means over `window` neighbours, fewer at the ends; values that are not finite are left out. An even window reaches
/// further back than ahead. REQUIRES: window >= 1.
std::vector<double> smoothed(std::span<const double> values, int window);

}  // namespace carnot
