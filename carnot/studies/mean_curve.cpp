#include "carnot/studies/mean_curve.h"

#include <algorithm>
#include <cmath>

#include "carnot/studies/estimate.h"

namespace carnot {

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

double mean_between(const Curve& curve, double from, double to) {
  const auto size = static_cast<double>(curve.size());
  double sum = 0, count = 0, place = 0;
  for (const auto& [step, value] : curve) {
    const double share = (place++ + 0.5) / size;
    if (share < from || share >= to) continue;
    sum += value;
    count += 1;
  }
  if (count == 0 && !curve.empty() && to == 1) return curve.rbegin()->second;
  return count == 0 ? std::nan("") : sum / count;
}

MeanCurve mean_curve(const std::vector<Curve>& curves, int window) {
  MeanCurve out;
  if (curves.empty()) return out;
  std::vector<std::vector<double>> values(curves.size());
  for (const auto& [step, ignored] : curves.front()) {
    bool everywhere = true;
    for (const Curve& curve : curves) everywhere = everywhere && curve.contains(step);
    if (!everywhere) continue;
    out.step.push_back(static_cast<double>(step));
    for (std::size_t i = 0; i < curves.size(); ++i) values[i].push_back(curves[i].at(step));
  }
  for (auto& run : values) run = smoothed(run, window);
  for (std::size_t k = 0; k < out.step.size(); ++k) {
    std::vector<double> column;
    for (const auto& run : values) column.push_back(run[k]);
    const Estimate estimate = estimate_of(column);
    out.mean.push_back(estimate.mean);
    if (!estimate.interval) continue;
    out.low.push_back(estimate.interval->low);
    out.high.push_back(estimate.interval->high);
  }
  return out;
}

Table curve_table(const std::string& name, const std::string& who) {
  return {.name = name, .columns = {who, "step", "mean", "low", "high"}};
}

Figure curve_figure(const Table& table, std::string title, Axis y) {
  return {.title = std::move(title),
          .caption = "Mean over runs; bands are 95 % intervals, of three or more.",
          .table = table.name,
          .x = "step",
          .y = {"mean"},
          .series = {table.columns[0]},
          .low = "low",
          .high = "high",
          .x_axis = {.label = "training step"},
          .y_axis = std::move(y)};
}

void add_curve(Table& table, const std::string& who, const MeanCurve& curve) {
  for (std::size_t k = 0; k < curve.step.size(); ++k)
    table.add(who, curve.step[k], curve.mean[k], curve.low.empty() ? std::nan("") : curve.low[k],
              curve.high.empty() ? std::nan("") : curve.high[k]);
}

}  // namespace carnot
