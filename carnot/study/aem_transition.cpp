// study/aem_transition.cpp -- AEM: from exploration to exploitation, arXiv:2605.00425
#include "carnot/study/entries.h"
#include "carnot/study/run_curves.h"
#include "carnot/study/text.h"

namespace carnot {
namespace {

constexpr double kThird = 1.0 / 3;
constexpr const char* kEntropy = "actor/entropy";

std::vector<double> means_between(const std::vector<Curve>& curves, double from, double to) {
  std::vector<double> means;
  for (const Curve& curve : curves) means.push_back(mean_between(curve, from, to));
  return means;
}

class AemTransition final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    visit.field("window", window_, "steps that curves are smoothed over", at_least(1));
  }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    auto runs = read_curves(input.paths);
    if (!runs) return runs.error();
    AnalysisReport report;
    ResultTable table{.name = "by run",
                      .columns = {"runs", "seed", "entropy, first third", "entropy, last third", "success after"}};
    Plot entropy{
        .title = "Entropy of the policy", .x = {.label = "training step"}, .y = {.label = "nats a token", .low = 0}};
    Plot success{.title = "Success while training",
                 .x = {.label = "training step"},
                 .y = {.label = "success", .low = 0, .percent = true}};
    for (const LabelledRuns& one : by_label(std::move(runs).value())) {
      const std::vector<Curve> entropies = one.curves(kEntropy);
      const auto early = means_between(entropies, 0, kThird), late = means_between(entropies, 2 * kThird, 1);
      const auto after = one.final_success();
      for (std::size_t r = 0; r < one.runs.size(); ++r)
        table.rows.push_back({one.label, static_cast<double>(one.runs[r].run.seed), early[r], late[r], after[r]});
      report.findings.push_back({one.label + ": entropy in the first third", "higher with AEM", mean_text(early)});
      report.findings.push_back({one.label + ": entropy in the last third", "lower with AEM", mean_text(late)});
      report.findings.push_back({one.label + ": success after training", "higher with AEM", mean_text(after)});
      entropy.series.push_back(series_of(one.label, entropies, window_));
      success.series.push_back(series_of(one.label, one.success_curves(), window_));
    }
    report.figures = {{svg(entropy), "Mean over runs, 95 % interval."}, {svg(success), ""}};
    report.tables = {std::move(table)};
    report.notes = {"Give runs with and without AEM from the same seeds, as `carnot compare` makes them."};
    return report;
  }

 private:
  int window_ = 5;
};

}  // namespace

AnalysisEntry aem_transition_entry() {
  return {.name = "aem-transition",
          .paper = "2605.00425",
          .needs = AnalysisNeeds::Runs,
          .summary = "entropy and success by step: is entropy higher early and lower late with AEM?",
          .make = make_analysis<AemTransition>};
}

}  // namespace carnot
