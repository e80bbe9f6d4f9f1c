// chart/interval_chart.h -- one row per name: a dot at its value, a bar over its interval. For comparing many things.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "carnot/chart/frame.h"

namespace carnot {

struct IntervalRow {
  std::string name{};
  double value = 0;  ///< not finite: the row stays empty
  std::optional<Extent> interval{};
  std::vector<double> single{};  ///< the single measurements, as small dots
  bool emphasized = true;        ///< false: grey
};

struct IntervalChart {
  std::string title{};
  Axis x{};
  std::optional<double> mark{};  ///< a vertical line at this value, such as 0 under differences
  std::vector<IntervalRow> rows{};
  double width = 720;  ///< the height follows from the rows
};

/// The <svg> element; the first row is on top.
std::string svg(const IntervalChart& chart);

}  // namespace carnot
