// study/aepo_budget.cpp -- AEPO: does the pre-monitored budget meet the tasks whose rewards vary?, arXiv:2510.14545
#include "carnot/base/statistics.h"
#include "carnot/branch/balanced_branch.h"
#include "carnot/chart/plot.h"
#include "carnot/study/branch_statistics.h"
#include "carnot/study/correlation.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_steps.h"

namespace carnot {
namespace {

class AepoBudget final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    range_.fields(visit);
    visit.field("slope", slope_, "of the sigmoid in root entropy minus mean entropy after tool calls", at_least(0));
    enum_field(visit, "form", form_, {"paper", "code"}, "rounding of the budget");
  }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    std::vector<double> budgets, differences, variances;
    const auto runs = visit_rollouts(input.paths, range_, [&](const StudiedStep& step) -> Status {
      for (const Group& group : step.file.groups) {
        const auto probe = entropy_probe(group);
        const std::vector<double> scores = scores_of(group);
        if (!probe || scores.size() < 2) continue;
        budgets.push_back(balanced_budget(static_cast<int>(scores.size()), *probe, slope_, form_));
        differences.push_back(probe->root - (probe->tool_calls.empty() ? probe->root : mean(probe->tool_calls)));
        variances.push_back(std_population(scores) * std_population(scores));
      }
      return Done{};
    });
    if (!runs) return runs.error();
    return report_of(budgets, differences, variances);
  }

 private:
  static std::vector<double> scores_of(const Group& group) {
    std::vector<double> scores;
    for (const Tree& tree : group.trees)
      for (const Leaf& leaf : tree.leaves)
        if (leaf.valid()) scores.push_back(leaf.score);
    return scores;
  }

  static AnalysisReport report_of(const std::vector<double>& budgets, const std::vector<double>& differences,
                                  const std::vector<double>& variances) {
    AnalysisReport report;
    const std::size_t n = budgets.size();
    report.findings = {{"Spearman: budget m and reward variance of the group", "assumed positive, not measured",
                        correlation_text(spearman(budgets, variances), n)},
                       {"Spearman: entropy of root minus tool calls, and reward variance", "-",
                        correlation_text(spearman(differences, variances), n)}};
    ResultTable table{.name = "groups", .columns = {"budget m", "entropy difference", "reward variance"}};
    for (std::size_t g = 0; g < n; ++g) table.rows.push_back({budgets[g], differences[g], variances[g]});
    Plot plot{.title = "Budget signal and reward variance, a point per group",
              .x = {.label = "entropy of root minus mean of tool calls"},
              .y = {.label = "reward variance"}};
    plot.series = {{.x = differences, .y = variances, .draw = Draw::Points, .width = 3, .opacity = 0.4}};
    report.figures = {{svg(plot), ""}};
    report.tables = {std::move(table)};
    report.notes = {
        "The probe is the group's first trajectory, as in training. m rounds to whole trajectories, so that it has "
        "few values where the budget is small; the difference behind it has no such loss."};
    return report;
  }

  StepRange range_{};
  double slope_ = 0.2;
  BalancedForm form_ = BalancedForm::Paper;
};

}  // namespace

AnalysisEntry aepo_budget_entry() {
  return {.name = "aepo-budget",
          .paper = "2510.14545",
          .needs = AnalysisNeeds::Rollouts,
          .summary = "does the budget that entropy assigns to a task follow the variance of its rewards?",
          .make = make_analysis<AepoBudget>};
}

}  // namespace carnot
