// view/chart/figure.h -- a figure as data: which columns of which table to draw, and how. The page (view/chart/page.h)
// draws it.
//
//   Figure{.title = "Success", .table = "by step", .x = {.column = "step"}, .y = {.label = "success", .percent = true},
//          .columns = {"mean"}, .low = "low", .high = "high", .series = {"method"}}
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "carnot/view/chart/table.h"

namespace carnot {

enum class Draw {
  Lines,      ///< with a band where rows have low and high
  Points,     ///< a dot per row
  Bars,       ///< x holds categories; with whiskers where rows have low and high
  Intervals,  ///< one below the other, x holds their names: a dot, and a line from low to high
};

struct Axis {
  std::string label{};           ///< empty: the name of the column
  std::optional<double> low{};   ///< the least that a value can be: the axis and all bands end there
  std::optional<double> high{};  ///< the most
  bool percent = false;          ///< values are shares, written as percentages: 0.25 as "25 %"
};

/// Of shares: from 0 to 100 %.
inline Axis share_axis(std::string label = "") {
  return {.label = std::move(label), .low = 0, .high = 1, .percent = true};
}

struct Figure {
  std::string title{};
  std::string caption{};
  std::string table{};                              ///< its name
  std::map<std::string, std::vector<Cell>> rows{};  ///< by column, the cells of the rows to draw; empty: all
  Draw draw = Draw::Lines;
  std::string x{};                    ///< column
  std::vector<std::string> y{};       ///< columns, one series each
  std::vector<std::string> series{};  ///< columns: each combination of their values is a series
  std::string low{};                  ///< column: where the band begins; empty: no band
  std::string high{};
  std::string spread{};  ///< column, instead of the two: the band is y - spread to y + spread
  Axis x_axis{};
  Axis y_axis{};
  std::string base{};            ///< a series: drawn bold, and next to each of the others in a small figure
  std::optional<double> mark{};  ///< of intervals: a line there; those that hold it are grey
  std::string dots{};            ///< of intervals: a table of single values, with the same x and y[0]
};

}  // namespace carnot
