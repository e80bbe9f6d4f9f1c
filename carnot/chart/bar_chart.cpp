#include "carnot/chart/bar_chart.h"

#include <algorithm>
#include <cmath>

#include "carnot/base/check.h"

namespace carnot {
namespace {

constexpr double kLabelSize = 12;
constexpr double kGroupShare = 0.78;  ///< of a category's width that its bars take

struct Slots {
  double left = 0;
  double width = 0;  ///< of a category
  std::size_t bars = 1;

  double bar_width() const { return kGroupShare * width / static_cast<double>(bars); }
  double bar_left(std::size_t category, std::size_t bar) const {
    return left + width * (static_cast<double>(category) + (1 - kGroupShare) / 2) +
           bar_width() * static_cast<double>(bar);
  }
  double centre(std::size_t category) const { return left + width * (static_cast<double>(category) + 0.5); }
};

std::optional<Extent> extent_of_bars(const BarChart& chart) {
  std::optional<Extent> extent;
  for (const BarSeries& series : chart.series) {
    CARNOT_CHECK_EQ(series.values.size(), chart.categories.size());
    CARNOT_CHECK_EQ(series.low.size(), series.high.size());
    if (!series.low.empty()) CARNOT_CHECK_EQ(series.low.size(), series.values.size());
    for (const auto* values : {&series.values, &series.low, &series.high}) extent = joined(extent, extent_of(*values));
  }
  return extent;
}

void draw_bar(Drawing& drawing, const Slots& slots, const Scale& y, const BarChart& chart, std::size_t category,
              std::size_t bar) {
  const BarSeries& series = chart.series[bar];
  const double value = series.values[category];
  if (!std::isfinite(value)) return;
  const double base = y(std::clamp(0.0, y.low(), y.high())), tip = y(std::clamp(value, y.low(), y.high()));
  const double left = slots.bar_left(category, bar), width = slots.bar_width();
  const std::string name =
      series.name.empty() ? chart.categories[category] : chart.categories[category] + ", " + series.name;
  drawing.begin_hint(name + ": " + number_text(value));
  drawing.rectangle({left, std::min(base, tip)}, std::max(1.0, width - 1), std::abs(base - tip), colour_of(bar), 0.85);
  drawing.end_hint();
  if (series.low.empty() || !std::isfinite(series.low[category]) || !std::isfinite(series.high[category])) return;
  const double middle = left + width / 2;
  drawing.line({middle, y(std::clamp(series.low[category], y.low(), y.high()))},
               {middle, y(std::clamp(series.high[category], y.low(), y.high()))}, {.colour = "#222", .width = 1.4});
}

double widest_label(const BarChart& chart) {
  double widest = 0;
  for (const std::string& name : chart.categories) widest = std::max(widest, text_width(name, kLabelSize));
  return widest;
}

}  // namespace

std::string svg(const BarChart& chart) {
  std::optional<Extent> extent = extent_of_bars(chart);
  const bool is_empty = !extent;
  if (extent) extent = joined(extent, Extent{0, 0});
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; chart.series.size() > 1 && i < chart.series.size(); ++i)
    legend.push_back({.name = chart.series[i].name, .mark = LegendEntry::Mark::Box, .colour = colour_of(i)});

  const PlotArea height = plot_area(chart.size, 0, legend);
  const Scale labelled(chart.y, extent, height.bottom, height.top);
  PlotArea area =
      plot_area(chart.size, left_margin(tick_labels(labelled.ticks(), chart.y.percent), chart.y.label), legend);
  const double categories = static_cast<double>(std::max<std::size_t>(1, chart.categories.size()));
  const Slots slots{.left = area.left,
                    .width = (area.right - area.left) / categories,
                    .bars = std::max<std::size_t>(1, chart.series.size())};
  const bool turned = widest_label(chart) > slots.width - 6;
  const double names_height = turned ? std::min(0.45 * chart.size.height, 0.7 * widest_label(chart) + 14) : 18;
  area.bottom = chart.size.height - names_height - (chart.x_label.empty() ? 10 : 28);
  const Scale y(chart.y, extent, area.bottom, area.top);

  Drawing drawing(chart.size.width, chart.size.height, chart.title);
  draw_title(drawing, chart.size, chart.title);
  draw_vertical_axis(drawing, area, y, chart.y);
  for (std::size_t c = 0; c < chart.categories.size(); ++c) {
    for (std::size_t b = 0; b < chart.series.size(); ++b) draw_bar(drawing, slots, y, chart, c, b);
    const Point below{slots.centre(c), area.bottom + 16};
    if (turned) {
      drawing.text(below, chart.categories[c], {.size = kLabelSize, .anchor = "end", .turned = -40});
    } else {
      drawing.text(below, chart.categories[c], {.size = kLabelSize, .anchor = "middle"});
    }
  }
  const double zero = y(std::clamp(0.0, y.low(), y.high()));
  drawing.line({area.left, zero}, {area.right, zero}, {.colour = "#8a929c"});
  draw_horizontal_title(drawing, area, chart.x_label, names_height + 16);
  if (is_empty) draw_no_data(drawing, area);
  draw_legend(drawing, area, legend);
  return drawing.svg();
}

}  // namespace carnot
