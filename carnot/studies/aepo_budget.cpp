// studies/aepo_budget.cpp -- AEPO: does the pre-monitored budget meet the tasks whose rewards vary?, arXiv:2510.14545
#include "carnot/core/base/statistics.h"
#include "carnot/core/branch/balanced_branch.h"
#include "carnot/studies/branch_statistics.h"
#include "carnot/studies/correlation.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/rollout_analysis.h"

namespace carnot {
namespace {

class AepoBudget final : public RolloutAnalysis {
  void options(FieldVisitor& visit) override {
    visit.field("slope", slope_, "of the sigmoid in root entropy minus mean entropy after tool calls", at_least(0));
    enum_field(visit, "form", form_, {"paper", "code"}, "rounding of the budget");
  }

  void add(const StudiedStep& step) override {
    for (const Group& group : step.file.groups) {
      const auto probe = entropy_probe(group);
      std::vector<double> scores;
      for (const Tree& tree : group.trees)
        for (const Leaf& leaf : tree.leaves)
          if (leaf.valid()) scores.push_back(leaf.score);
      if (!probe || scores.size() < 2) continue;
      const double mean_of_calls = probe->tool_calls.empty() ? probe->root : mean(probe->tool_calls);
      table_.add(balanced_budget(static_cast<int>(scores.size()), *probe, slope_, form_), probe->root - mean_of_calls,
                 std_population(scores) * std_population(scores));
    }
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report;
    const std::vector<double> variances = table_.numbers("reward variance");
    report.find("Spearman: budget m and reward variance of the group", "assumed positive, not measured",
                correlation_text(resampled_spearman(table_.numbers("budget m"), variances)));
    report.find("Spearman: entropy of root minus tool calls, and reward variance", "-",
                correlation_text(resampled_spearman(table_.numbers("entropy difference"), variances)));
    report.tables = {table_};
    report.figures = {{.title = "Budget signal and reward variance, a point per group",
                       .table = "groups",
                       .draw = Draw::Points,
                       .x = "entropy difference",
                       .y = {"reward variance"},
                       .x_axis = {.label = "entropy of root minus mean of tool calls"},
                       .y_axis = {.low = 0}}};
    report.notes = {
        "The probe is the group's first trajectory, as in training. m rounds to whole trajectories, so that it has "
        "few values where the budget is small; the difference behind it has no such loss."};
    return report;
  }

  double slope_ = 0.2;
  BalancedForm form_ = BalancedForm::Paper;
  Table table_{.name = "groups", .columns = {"budget m", "entropy difference", "reward variance"}};
};

}  // namespace

std::unique_ptr<Analysis> aepo_budget() { return std::make_unique<AepoBudget>(); }

}  // namespace carnot
