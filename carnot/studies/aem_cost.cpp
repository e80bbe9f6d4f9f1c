// studies/aem_cost.cpp -- AEM: what share of a training step its own work takes, arXiv:2605.00425
#include <algorithm>

#include "carnot/core/base/statistics.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/credit/entropy_modulate.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/rollout_analysis.h"
#include "carnot/studies/run_curves.h"

namespace carnot {
namespace {

double mean_of(const std::vector<RunCurves>& runs, const std::string& metric) {
  std::vector<double> values;
  for (const RunCurves& run : runs)
    if (const auto found = run.metrics.find(metric); found != run.metrics.end())
      for (const auto& [step, value] : found->second) values.push_back(value);
  return mean(values);
}

class AemCost final : public RolloutAnalysis {
 public:
  AemCost() : RolloutAnalysis({.columns = {Column::EntropyOld}}) {}

 private:
  /// Seconds of the modulation alone on the step's rollouts: the fastest of a few.
  void add(const StudiedStep& step) override {
    const CreditRule rule = entropy_modulate();
    CreditTable table = fresh_credit(step.all);
    double least = 1e9;
    for (int round = 0; round < 5; ++round) {
      const Stopwatch watch;
      rule.apply(step.all, table);
      least = std::min(least, watch.seconds());
    }
    seconds_.push_back(least);
  }

  Result<AnalysisReport> report(const AnalysisInput& input) const override {
    CARNOT_ASSIGN_OR_RETURN(const auto runs, read_curves(input.paths));
    const double step = mean_of(runs, "timing_s/step");
    AnalysisReport report;
    Table table{.name = "shares of a step", .columns = {"stage", "seconds", "share"}};
    const auto add = [&](const std::string& name, const std::string& paper, double seconds) {
      table.add(name, seconds, seconds / step);
      report.find(name, paper, percent_text(seconds / step));
    };
    add("AEM's own work", "1.1 %", mean(seconds_));
    add("rollout", "45.9 %", mean_of(runs, "timing_s/rollout"));
    add("update", "36.0 %", mean_of(runs, "timing_s/update_actor"));
    add("log-probabilities and other signals", "16.8 %", mean_of(runs, "timing_s/score"));
    add("credit, all of it", "-", mean_of(runs, "timing_s/adv"));
    report.tables = {std::move(table)};
    report.figures = {{.title = "Shares of a training step",
                       .table = "shares of a step",
                       .draw = Draw::Bars,
                       .x = "stage",
                       .y = {"share"},
                       .y_axis = share_axis()}};
    report.notes = {
        "AEM's own work is timed here on the runs' rollouts, the fastest of five; the stages are the runs' own "
        "measurements (metrics.jsonl), means over steps."};
    return report;
  }

  std::vector<double> seconds_{};
};

}  // namespace

std::unique_ptr<Analysis> aem_cost() { return std::make_unique<AemCost>(); }

}  // namespace carnot
