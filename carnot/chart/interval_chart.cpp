#include "carnot/chart/interval_chart.h"

#include <algorithm>
#include <cmath>

namespace carnot {
namespace {

constexpr double kRowHeight = 24;

std::optional<Extent> extent_of_rows(const IntervalChart& chart) {
  std::optional<Extent> extent;
  for (const IntervalRow& row : chart.rows) {
    std::vector<double> values = row.single;
    values.push_back(row.value);
    if (row.interval) values.insert(values.end(), {row.interval->low, row.interval->high});
    extent = joined(extent, extent_of(values));
  }
  return extent && chart.mark ? joined(extent, Extent{*chart.mark, *chart.mark}) : extent;
}

void draw_row(Drawing& drawing, const PlotArea& area, const Scale& x, const IntervalRow& row, double y) {
  drawing.text({area.left - 9, y + 4}, row.name, {.size = 12, .anchor = "end"});
  const auto inside = [&](double value) { return std::clamp(value, x.low(), x.high()); };
  const std::string colour = row.emphasized ? colour_of(0) : "#8a929c";
  for (const double value : row.single)
    if (std::isfinite(value) && inside(value) == value) drawing.circle({x(value), y}, 2, colour, 0.45);
  if (row.interval && std::isfinite(row.interval->low) && std::isfinite(row.interval->high))
    drawing.line({x(inside(row.interval->low)), y}, {x(inside(row.interval->high)), y}, {.colour = colour, .width = 2});
  if (std::isfinite(row.value) && inside(row.value) == row.value) {
    drawing.begin_hint(row.name + ": " + number_text(row.value));
    drawing.circle({x(row.value), y}, 4.5, colour);
    drawing.end_hint();
  }
}

}  // namespace

std::string svg(const IntervalChart& chart) {
  const auto extent = extent_of_rows(chart);
  std::vector<std::string> names;
  for (const IntervalRow& row : chart.rows) names.push_back(row.name);
  const ChartSize size{.width = chart.width,
                       .height = 38 + kRowHeight * std::max<double>(2, static_cast<double>(names.size())) + 50};
  const PlotArea area = plot_area(size, left_margin(names, ""), {});
  const Scale x(chart.x, extent, area.left, area.right);

  Drawing drawing(size.width, size.height, chart.title);
  draw_title(drawing, size, chart.title);
  draw_horizontal_axis(drawing, area, x, chart.x);
  if (chart.mark && *chart.mark >= x.low() && *chart.mark <= x.high())
    drawing.line({x(*chart.mark), area.top}, {x(*chart.mark), area.bottom}, {.colour = "#444", .dashes = "4 3"});
  for (std::size_t i = 0; i < chart.rows.size(); ++i)
    draw_row(drawing, area, x, chart.rows[i], area.top + kRowHeight * (static_cast<double>(i) + 0.5));
  if (!extent) draw_no_data(drawing, area);
  return drawing.svg();
}

}  // namespace carnot
