// studies/aem_transition.cpp -- AEM: from exploration to exploitation, arXiv:2605.00425
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/run_curves.h"

namespace carnot {
namespace {

constexpr double kThird = 1.0 / 3;

std::vector<double> means_between(const std::vector<Curve>& curves, double from, double to) {
  std::vector<double> means;
  for (const Curve& curve : curves) means.push_back(mean_between(curve, from, to));
  return means;
}

class AemTransition final : public CurveAnalysis {
  AnalysisReport begin() const override {
    const Table entropy = curve_table("entropy by step", "runs"), success = curve_table("success by step", "runs");
    return {.tables = {{.name = "by run",
                        .columns = {"runs", "seed", "entropy, first third", "entropy, last third", "success after"}},
                       entropy,
                       success},
            .figures = {curve_figure(entropy, "Entropy of the policy", {.label = "nats per token", .low = 0}),
                        curve_figure(success, "Success while training", share_axis("success"))},
            .notes = {"Give runs with and without AEM from the same seeds, as `carnot compare` makes them."}};
  }

  void add(const std::vector<LabelledRuns>& all, AnalysisReport& report) const override {
    for (const LabelledRuns& one : all) add_runs(one, report);
  }

  void add_runs(const LabelledRuns& one, AnalysisReport& report) const {
    const std::vector<Curve> entropies = one.curves("actor/entropy");
    const auto early = means_between(entropies, 0, kThird), late = means_between(entropies, 2 * kThird, 1);
    const auto after = one.final_success();
    for (std::size_t r = 0; r < one.runs.size(); ++r)
      report.tables[0].add(one.label, one.runs[r].run.seed, early[r], late[r], after[r]);
    add_curve(report.tables[1], one.label, mean_curve(entropies, window_));
    add_curve(report.tables[2], one.label, mean_curve(one.success_curves(), window_));
    report.find(one.label + ": entropy in the first third", "higher with AEM", mean_text(early));
    report.find(one.label + ": entropy in the last third", "lower with AEM", mean_text(late));
    report.find(one.label + ": success after training", "higher with AEM", mean_text(after));
  }
};

}  // namespace

std::unique_ptr<Analysis> aem_transition() { return std::make_unique<AemTransition>(); }

}  // namespace carnot
