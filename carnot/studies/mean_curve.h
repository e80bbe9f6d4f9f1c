// studies/mean_curve.h -- curves of several runs as one: means over runs with their intervals, as rows and figures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/studies/metric_curves.h"
#include "carnot/view/chart/figure.h"

namespace carnot {

/// Means over `window` neighbours, fewer at the ends; values that are not finite are left out. An even window reaches
/// further back than ahead. REQUIRES: window >= 1.
std::vector<double> smoothed(std::span<const double> values, int window);

/// Mean of the curve over the steps whose place among them lies in [from, to), 0 <= from < to <= 1; not a number of
/// none.
double mean_between(const Curve& curve, double from, double to);

/// Mean and interval over runs at every step that all of them have, of curves smoothed over `window` steps.
struct MeanCurve {
  std::vector<double> step{};
  std::vector<double> mean{};
  std::vector<double> low{};  ///< empty for fewer than three runs
  std::vector<double> high{};
};
MeanCurve mean_curve(const std::vector<Curve>& curves, int window);

/// A table of mean curves without rows: `who`, step, mean, low, high. And a figure of it, with a line for each `who`.
Table curve_table(const std::string& name, const std::string& who);
Figure curve_figure(const Table& table, std::string title, Axis y);

/// Adds a row per step; low and high are not numbers where there is no interval.
void add_curve(Table& table, const std::string& who, const MeanCurve& curve);

}  // namespace carnot
