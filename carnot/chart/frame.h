// chart/frame.h -- what every chart has around its data: title, axes with ticks and grid, legend.
#pragma once

#include <string>
#include <vector>

#include "carnot/chart/scale.h"
#include "carnot/chart/svg.h"

namespace carnot {

/// Size of the whole chart in pixels.
struct ChartSize {
  double width = 720;
  double height = 360;
};

struct LegendEntry {
  enum class Mark { Line, Point, Box };
  std::string name{};
  Mark mark = Mark::Line;
  std::string colour{};
  std::string dashes{};
};

/// The rectangle that the data take.
struct PlotArea {
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
};

/// What is left of the chart for the data, with `left` pixels for the labels of the vertical axis. The legend is
/// on the right.
PlotArea plot_area(const ChartSize& size, double left, const std::vector<LegendEntry>& legend);

/// Pixels that the labels of a vertical axis take, its title included.
double left_margin(const std::vector<std::string>& labels, const std::string& title);

void draw_title(Drawing& drawing, const ChartSize& size, const std::string& title);
void draw_legend(Drawing& drawing, const PlotArea& area, const std::vector<LegendEntry>& legend);

/// Grid lines, labels of the ticks and the axis' title.
void draw_horizontal_axis(Drawing& drawing, const PlotArea& area, const Scale& scale, const Axis& axis);
void draw_vertical_axis(Drawing& drawing, const PlotArea& area, const Scale& scale, const Axis& axis);

/// The axis' title alone, for axes of names.
void draw_horizontal_title(Drawing& drawing, const PlotArea& area, const std::string& title, double below);

/// Says so in the middle of an empty plot.
void draw_no_data(Drawing& drawing, const PlotArea& area);

}  // namespace carnot
