// chart/bar_chart.h -- grouped bars over named categories, with intervals where they are known.
#pragma once

#include <string>
#include <vector>

#include "carnot/chart/frame.h"

namespace carnot {

struct BarSeries {
  std::string name{};
  std::vector<double> values{};  ///< one per category; what is not finite has no bar
  std::vector<double> low{};     ///< with `high`, a whisker on each bar; empty: none
  std::vector<double> high{};
};

struct BarChart {
  std::string title{};
  std::string x_label{};
  Axis y{};  ///< starts at 0 unless it says otherwise
  std::vector<std::string> categories{};
  std::vector<BarSeries> series{};
  ChartSize size{};
};

/// The <svg> element. Names of categories are turned where they would run into each other.
/// REQUIRES: every series has a value per category.
std::string svg(const BarChart& chart);

}  // namespace carnot
