#include "carnot/chart/frame.h"

#include <algorithm>

namespace carnot {
namespace {

constexpr double kTitleHeight = 38;
constexpr double kTitleSize = 15;  ///< less where the title is long
constexpr double kBottom = 46;
constexpr double kTickSize = 12;
constexpr double kLegendLine = 19;
constexpr double kLegendMark = 26;

const Stroke kGrid{.colour = "#e4e6ea"};
const Stroke kAxisLine{.colour = "#8a929c"};
const TextStyle kTick{.size = kTickSize, .colour = "#555"};

TextStyle anchored(TextStyle style, const char* anchor) {
  style.anchor = anchor;
  return style;
}

double legend_width(const std::vector<LegendEntry>& legend) {
  double widest = 0;
  for (const LegendEntry& entry : legend) widest = std::max(widest, text_width(entry.name, kTickSize));
  return legend.empty() ? 0 : kLegendMark + widest + 18;
}

void draw_mark(Drawing& drawing, Point at, const LegendEntry& entry) {
  switch (entry.mark) {
    case LegendEntry::Mark::Line:
      drawing.line(at, {at.x + 20, at.y}, {.colour = entry.colour, .width = 2.2, .dashes = entry.dashes});
      return;
    case LegendEntry::Mark::Point: drawing.circle({at.x + 10, at.y}, 4, entry.colour); return;
    case LegendEntry::Mark::Box: drawing.rectangle({at.x + 4, at.y - 6}, 12, 12, entry.colour); return;
  }
}

}  // namespace

PlotArea plot_area(const ChartSize& size, double left, const std::vector<LegendEntry>& legend) {
  const double right = size.width - std::max(20.0, legend_width(legend));
  return {.left = left, .right = std::max(right, left + 60), .top = kTitleHeight, .bottom = size.height - kBottom};
}

double left_margin(const std::vector<std::string>& labels, const std::string& title) {
  double widest = 0;
  for (const std::string& label : labels) widest = std::max(widest, text_width(label, kTickSize));
  return 16 + widest + (title.empty() ? 0 : 20);
}

void draw_title(Drawing& drawing, const ChartSize& size, const std::string& title) {
  if (title.empty()) return;
  const double fits = kTitleSize * size.width / (1.15 * text_width(title, kTitleSize));
  drawing.text({size.width / 2, 22}, title,
               {.size = std::clamp(fits, kTickSize - 3, kTitleSize), .anchor = "middle", .bold = true});
}

void draw_legend(Drawing& drawing, const PlotArea& area, const std::vector<LegendEntry>& legend) {
  double y = area.top + 8;
  for (const LegendEntry& entry : legend) {
    draw_mark(drawing, {area.right + 12, y}, entry);
    drawing.text({area.right + 12 + kLegendMark, y + 4}, entry.name, {.size = kTickSize});
    y += kLegendLine;
  }
}

void draw_horizontal_axis(Drawing& drawing, const PlotArea& area, const Scale& scale, const Axis& axis) {
  const auto labels = tick_labels(scale.ticks(), axis.percent);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double x = scale(scale.ticks()[i]);
    drawing.line({x, area.top}, {x, area.bottom}, kGrid);
    drawing.text({x, area.bottom + 17}, labels[i], anchored(kTick, "middle"));
  }
  drawing.line({area.left, area.bottom}, {area.right, area.bottom}, kAxisLine);
  draw_horizontal_title(drawing, area, axis.label, 36);
}

void draw_vertical_axis(Drawing& drawing, const PlotArea& area, const Scale& scale, const Axis& axis) {
  const auto labels = tick_labels(scale.ticks(), axis.percent);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double y = scale(scale.ticks()[i]);
    drawing.line({area.left, y}, {area.right, y}, kGrid);
    drawing.text({area.left - 7, y + 4}, labels[i], anchored(kTick, "end"));
  }
  drawing.line({area.left, area.top}, {area.left, area.bottom}, kAxisLine);
  if (!axis.label.empty())
    drawing.text({16, (area.top + area.bottom) / 2}, axis.label, {.size = 12.5, .anchor = "middle", .turned = -90});
}

void draw_horizontal_title(Drawing& drawing, const PlotArea& area, const std::string& title, double below) {
  if (!title.empty())
    drawing.text({(area.left + area.right) / 2, area.bottom + below}, title, {.size = 12.5, .anchor = "middle"});
}

void draw_no_data(Drawing& drawing, const PlotArea& area) {
  drawing.text({(area.left + area.right) / 2, (area.top + area.bottom) / 2}, "no data",
               {.size = 14, .anchor = "middle", .colour = "#999"});
}

}  // namespace carnot
