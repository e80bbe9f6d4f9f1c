#include "carnot/studies/comparison_page.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/json.h"
#include "carnot/studies/comparison_text.h"
#include "carnot/studies/mean_curve.h"
#include "carnot/view/chart/json.h"
#include "carnot/view/chart/page.h"

namespace carnot {
namespace {

/// What one kind of curve shows.
struct CurveKind {
  std::string metric{};
  std::string title{};
  Axis y{};
  int window = 1;
};

std::vector<Curve> curves_of(const ContestantResult& contestant, const std::string& metric) {
  std::vector<Curve> curves;
  for (const ContestRun& run : contestant.runs)
    if (const auto found = run.curves.find(metric); run.finished && found != run.curves.end())
      curves.push_back(found->second);
  return curves;
}

void add_curves(const Comparison& comparison, const CurveKind& kind, std::vector<Table>& tables,
                std::vector<Figure>& figures) {
  Table table = curve_table(kind.title, "method");
  for (const ContestantResult& contestant : comparison.contestants)
    add_curve(table, contestant.name, mean_curve(curves_of(contestant, kind.metric), kind.window));
  if (table.rows.empty()) return;
  Figure figure = curve_figure(table, kind.title, kind.y);
  figure.base = comparison.contestants[comparison.base].name;
  figure.caption = "Mean over seeds; bands are 95 % intervals of the mean, of three or more.";
  if (kind.window > 1)
    figure.caption += " Each step is averaged with its neighbours over " + std::to_string(kind.window) + " steps.";
  figures.push_back(std::move(figure));
  tables.push_back(std::move(table));
}

/// Differences to the base in percentage points: means with their intervals, and those of single seeds.
void add_differences(const Comparison& comparison, std::vector<Table>& tables, std::vector<Figure>& figures) {
  const ContestantResult& base = comparison.contestants[comparison.base];
  Table means{.name = "differences to " + base.name, .columns = {"method", "difference", "low", "high"}};
  Table single{.name = "differences by seed", .columns = {"method", "seed", "difference"}};
  const BySeed others = base.by_seed(&ContestRun::after);
  for (std::size_t c = 0; c < comparison.contestants.size(); ++c) {
    const ContestantResult& contestant = comparison.contestants[c];
    const Estimate e = comparison.difference(c, &ContestRun::after);
    if (c == comparison.base || e.count == 0) continue;
    const Interval interval = e.interval.value_or(Interval{std::nan(""), std::nan("")});
    means.add(contestant.name, 100 * e.mean, 100 * interval.low, 100 * interval.high);
    for (const auto& [seed, value] : contestant.by_seed(&ContestRun::after))
      if (others.contains(seed)) single.add(contestant.name, seed, 100 * (value - others.at(seed)));
  }
  if (means.rows.empty()) return;
  figures.push_back(
      {.title = "Success after training, difference to " + base.name,
       .caption =
           "Large dots: means over seeds; small dots: seeds; grey where the interval contains 0 or there is none.",
       .table = means.name,
       .draw = Draw::Intervals,
       .x = "method",
       .y = {"difference"},
       .low = "low",
       .high = "high",
       .y_axis = {.label = "percentage points", .low = -100, .high = 100},
       .mark = 0,
       .dots = single.name});
  tables.insert(tables.end(), {std::move(means), std::move(single)});
}

}  // namespace

std::string comparison_html(const Comparison& comparison) {
  const ShownMetrics shown = ShownMetrics::in(comparison.environment, comparison.evaluation_samples);
  // Single noisy steps are averaged over a tenth of the run.
  const int window = static_cast<int>(std::max<std::int64_t>(1, comparison.training_steps / 10));
  std::vector<Table> tables{seeds_table(comparison)};
  std::vector<Figure> figures;
  if (has_peaks(comparison)) tables.push_back(peak_table(comparison));
  add_differences(comparison, tables, figures);
  for (const CurveKind& kind :
       {CurveKind{shown.validation, "Success on validation tasks", share_axis("success")},
        CurveKind{shown.success, "Success on training tasks", share_axis("success"), window},
        CurveKind{shown.entropy, "Entropy of the policy", {.label = "nats a token", .low = 0}, window},
        CurveKind{
            shown.response_length, "Response length", {.label = "sampled tokens a trajectory", .low = 0}, window}})
    add_curves(comparison, kind, tables, figures);
  OrderedJson json{{"title", "Comparison of methods"},
                   {"introduction", introduction(comparison)},
                   {"findings", rows_json(comparison_table(comparison))},
                   {"sections", OrderedJson::array()}};
  for (const Section& section : remarks(comparison))
    json["sections"].push_back({{"title", section.title}, {"lines", section.lines}});
  if (has_peaks(comparison))
    json["sections"].push_back({{"title", peak_table(comparison).name}, {"lines", {peak_note()}}});
  add_tables_and_figures(json, tables, figures);
  return page_html(json_text(json));
}

}  // namespace carnot
