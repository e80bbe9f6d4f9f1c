// study/aem_cost.cpp -- AEM: what share of a training step its own work takes, arXiv:2605.00425
#include <array>

#include "carnot/base/statistics.h"
#include "carnot/base/stopwatch.h"
#include "carnot/chart/bar_chart.h"
#include "carnot/credit/entropy_modulate.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_steps.h"
#include "carnot/study/run_curves.h"
#include "carnot/study/text.h"

namespace carnot {
namespace {

struct Stage {
  std::string_view metric;
  std::string_view name;
  std::string_view paper;
};
constexpr std::array<Stage, 4> kStages = {{{"timing_s/rollout", "rollout", "45.9 %"},
                                           {"timing_s/update_actor", "update", "36.0 %"},
                                           {"timing_s/score", "log-probabilities and other signals", "16.8 %"},
                                           {"timing_s/adv", "credit, all of it", "-"}}};

/// Seconds of the modulation alone on the step's rollouts: the fastest of a few.
double seconds_of_modulation(const StudiedStep& step) {
  const CreditRule rule = entropy_modulate();
  CreditTable table = fresh_credit(step.all);
  double least = 1e9;
  for (int round = 0; round < 5; ++round) {
    const Stopwatch watch;
    rule.apply(step.all, table);
    least = std::min(least, watch.seconds());
  }
  return least;
}

class AemCost final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override { range_.fields(visit); }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    std::vector<double> own;
    const auto visited = visit_rollouts(input.paths, range_, [&](const StudiedStep& step) -> Status {
      if (const Status status = require_columns(step, {Column::EntropyOld}); !status) return status;
      own.push_back(seconds_of_modulation(step));
      return Done{};
    });
    if (!visited) return visited.error();
    const auto runs = read_curves(input.paths);
    if (!runs) return runs.error();
    const double step = mean_of(*runs, "timing_s/step");
    AnalysisReport report;
    ResultTable table{.name = "shares of a step", .columns = {"stage", "seconds", "share"}};
    BarChart bars{.title = "Shares of a training step",
                  .y = {.label = "share", .low = 0, .percent = true},
                  .series = {{.name = ""}}};
    const auto add = [&](std::string_view name, std::string_view paper, double seconds) {
      table.rows.push_back({std::string(name), seconds, seconds / step});
      report.findings.push_back({std::string(name), std::string(paper), percent_text(seconds / step)});
      bars.categories.emplace_back(name);
      bars.series[0].values.push_back(seconds / step);
    };
    add("AEM's own work", "1.1 %", mean(own));
    for (const Stage& stage : kStages) add(stage.name, stage.paper, mean_of(*runs, std::string(stage.metric)));
    report.figures = {{svg(bars), ""}};
    report.tables = {std::move(table)};
    report.notes = {
        "AEM's own work is timed here on the runs' rollouts, the fastest of five; the stages are the runs' own "
        "measurements (metrics.jsonl), means over steps."};
    return report;
  }

 private:
  static double mean_of(const std::vector<RunCurves>& runs, const std::string& metric) {
    std::vector<double> values;
    for (const RunCurves& run : runs) {
      const auto found = run.metrics.find(metric);
      if (found == run.metrics.end()) continue;
      for (const auto& [step, value] : found->second) values.push_back(value);
    }
    return mean(values);
  }

  StepRange range_{};
};

}  // namespace

AnalysisEntry aem_cost_entry() {
  return {.name = "aem-cost",
          .paper = "2605.00425",
          .needs = AnalysisNeeds::Rollouts,
          .summary = "share of a training step that AEM's own work takes",
          .make = make_analysis<AemCost>};
}

}  // namespace carnot
