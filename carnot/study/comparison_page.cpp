#include <algorithm>
#include <cmath>
#include <limits>

#include "carnot/chart/interval_chart.h"
#include "carnot/chart/page.h"
#include "carnot/chart/plot.h"
#include "carnot/study/comparison_report.h"
#include "carnot/study/comparison_text.h"

namespace carnot {
namespace {

constexpr std::size_t kMostBands = 6;  ///< more of them hide each other

/// What one kind of curve shows.
struct CurveKind {
  std::string metric{};
  std::string title{};
  Axis y{};
  /// What the metric can be. Student's t knows no bounds: bands are cut to it.
  Extent possible{0, std::numeric_limits<double>::infinity()};
  int window = 1;
};

constexpr Extent kShares{0, 1};
constexpr Extent kDifferences{-100, 100};  ///< of percentages

double cut(double value, const Extent& to) { return std::clamp(value, to.low, to.high); }

Series mean_series(const ContestantResult& contestant, const CurveKind& kind, bool has_band) {
  std::vector<Curve> curves;
  for (const ContestRun& run : contestant.runs)
    if (const auto found = run.curves.find(kind.metric); run.finished && found != run.curves.end())
      curves.push_back(found->second);
  MeanCurve mean = mean_curve(curves, kind.window);
  if (!has_band) mean.low = mean.high = {};
  for (double& x : mean.low) x = cut(x, kind.possible);
  for (double& x : mean.high) x = cut(x, kind.possible);
  return {.name = contestant.name, .x = mean.step, .y = mean.mean, .low = mean.low, .high = mean.high};
}

/// All methods in one plot.
std::string curves_svg(const Comparison& comparison, const CurveKind& kind) {
  Plot plot{.title = kind.title, .x = {.label = "training step"}, .y = kind.y};
  const std::size_t count = comparison.contestants.size();
  for (const ContestantResult& contestant : comparison.contestants)
    plot.series.push_back(mean_series(contestant, kind, count <= kMostBands));
  plot.size = {.width = 820, .height = std::max(360.0, 70 + 19.0 * static_cast<double>(count))};
  return svg(plot);
}

/// A small plot for each method, over the base in grey.
std::vector<std::string> curves_against_base(const Comparison& comparison, const CurveKind& kind) {
  constexpr int kGrey = 7;
  Series base = mean_series(comparison.contestants[comparison.base], kind, true);
  base.name.clear();
  base.colour = kGrey;
  // The same axis everywhere, so that plots can be compared.
  Axis y = kind.y;
  std::vector<Series> all;
  std::optional<Extent> extent;
  for (const ContestantResult& contestant : comparison.contestants) {
    all.push_back(mean_series(contestant, kind, true));
    extent = joined(extent, extent_of(all.back().y));
  }
  y.label.clear();
  if (extent && extent->low < extent->high) {
    const double margin = 0.1 * (extent->high - extent->low);
    y.low = cut(extent->low - margin, kind.possible);
    y.high = cut(extent->high + margin, kind.possible);
  }
  std::vector<std::string> plots;
  for (std::size_t c = 0; c < all.size(); ++c) {
    if (c == comparison.base) continue;
    Plot plot{.title = all[c].name, .y = y, .series = {base, all[c]}, .size = {.width = 290, .height = 210}};
    plot.series[1].colour = 0;
    plot.series[1].name.clear();
    plots.push_back(svg(plot));
  }
  return plots;
}

std::string differences_svg(const Comparison& comparison) {
  const std::string base = comparison.contestants[comparison.base].name;
  IntervalChart chart{.title = "Success after training, difference to " + base,
                      .x = {.label = "percentage points"},
                      .mark = 0,
                      .width = 820};
  for (std::size_t c = 0; c < comparison.contestants.size(); ++c) {
    if (c == comparison.base) continue;
    const Estimate e = comparison.difference(c, &ContestRun::after);
    IntervalRow row{.name = comparison.contestants[c].name,
                    .value = e.count > 0 ? 100 * e.mean : std::nan(""),
                    .emphasized = e.excludes_zero()};
    if (e.interval)
      row.interval = Extent{cut(100 * e.interval->low, kDifferences), cut(100 * e.interval->high, kDifferences)};
    const BySeed own = comparison.contestants[c].by_seed(&ContestRun::after),
                 others = comparison.contestants[comparison.base].by_seed(&ContestRun::after);
    for (const auto& [seed, value] : own)
      if (others.contains(seed)) row.single.push_back(100 * (value - others.at(seed)));
    chart.rows.push_back(std::move(row));
  }
  return svg(chart);
}

/// Steps over which single noisy steps are averaged: a tenth of the run.
int smoothing_window(const Comparison& comparison) {
  return static_cast<int>(std::max<std::int64_t>(1, comparison.training_steps / 10));
}

std::vector<CurveKind> curve_kinds(const Comparison& comparison) {
  const ShownMetrics shown = ShownMetrics::in(comparison.environment, comparison.evaluation_samples);
  const int window = smoothing_window(comparison);
  const Axis success{.label = "success", .percent = true};
  const auto is_evaluated = [&](const ContestRun& run) { return run.curves.contains(shown.validation); };
  std::vector<CurveKind> kinds;
  if (std::any_of(comparison.contestants.begin(), comparison.contestants.end(), [&](const ContestantResult& one) {
        return std::any_of(one.runs.begin(), one.runs.end(), is_evaluated);
      }))
    kinds.push_back(
        {.metric = shown.validation, .title = "Success on validation tasks", .y = success, .possible = kShares});
  kinds.push_back({.metric = shown.success,
                   .title = "Success on training tasks",
                   .y = success,
                   .possible = kShares,
                   .window = window});
  kinds.push_back(
      {.metric = shown.entropy, .title = "Entropy of the policy", .y = {.label = "nats a token"}, .window = window});
  kinds.push_back({.metric = shown.response_length,
                   .title = "Response length",
                   .y = {.label = "sampled tokens a trajectory"},
                   .window = window});
  return kinds;
}

std::string caption_of(const CurveKind& kind) {
  return kind.window > 1
             ? "Mean over seeds, each step averaged with its neighbours over " + std::to_string(kind.window) + " steps."
             : "Mean over seeds.";
}

void add_curves(Page& page, const Comparison& comparison) {
  const std::size_t count = comparison.contestants.size();
  page.heading("Curves");
  if (count <= kMostBands && comparison.contestants.front().runs.size() >= kFewestForInterval)
    page.paragraph("Bands are 95 % intervals of the mean.");
  for (const CurveKind& kind : curve_kinds(comparison)) {
    page.figure(curves_svg(comparison, kind), caption_of(kind));
    if (count > 2)
      page.gallery(curves_against_base(comparison, kind), kind.title + ": each method against " +
                                                              comparison.contestants[comparison.base].name +
                                                              " (grey), with 95 % intervals of the means.");
  }
}

}  // namespace

std::string comparison_html(const Comparison& comparison) {
  Page page("Comparison of methods");
  page.paragraph(introduction(comparison)).table(comparison_table(comparison));
  if (comparison.contestants.size() > 1)
    page.figure(
        differences_svg(comparison),
        "Large dots: means over seeds; small dots: seeds; grey where the interval contains 0 or there is none.");
  for (const Section& section : remarks(comparison)) page.heading(section.title).list(section.lines);
  add_curves(page, comparison);
  if (has_peaks(comparison))
    page.heading("Peak against final success").table(peak_table(comparison)).paragraph(peak_note());
  page.heading("Success after training, by seed").table(seeds_table(comparison));
  return page.html();
}

}  // namespace carnot
