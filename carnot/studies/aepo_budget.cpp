// studies/aepo_budget.cpp -- AEPO: does the pre-monitored budget meet the tasks whose rewards vary?, arXiv:2510.14545
#include <optional>
#include <vector>

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
    std::vector<std::vector<const Trajectory*>> groups(step.file.groups.size());
    for (const Trajectory& one : step.all)
      if (one.leaf().valid()) groups[one.group_index].push_back(&one);
    for (const auto& group : groups) add(group);
  }

  void add(const std::vector<const Trajectory*>& group) {
    std::optional<EntropyProbe> probe;
    std::vector<double> scores, later;
    for (const Trajectory* one : group) {
      scores.push_back(one->leaf().score);
      const auto entropies = entropy_probe(*one);
      if (!entropies) continue;
      if (one->leaf().sibling == 0)
        probe = entropies;
      else
        later.push_back(difference(*entropies));
    }
    if (!probe || later.empty()) return;
    table_.add(balanced_budget(static_cast<int>(scores.size()), *probe, slope_, form_), difference(*probe), mean(later),
               std_population(scores) * std_population(scores));
  }

  /// Of the root and the mean of the tool calls; 0 without calls.
  static double difference(const EntropyProbe& probe) {
    return probe.tool_calls.empty() ? 0 : probe.root - mean(probe.tool_calls);
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report;
    const std::vector<double> variances = table_.numbers("reward variance");
    report.find("Spearman: budget m and reward variance of the group", "assumed positive, not measured",
                correlation_text(resampled_spearman(table_.numbers("budget m"), variances)));
    report.find("Spearman: entropy of root minus tool calls, and reward variance", "-",
                correlation_text(resampled_spearman(table_.numbers("entropy difference"), variances)));
    report.find(
        "Pearson: entropy difference of the probe, and mean of the group's later rollouts", "assumed to stand for them",
        correlation_text(resampled_pearson(table_.numbers("entropy difference"), table_.numbers("later ones"))));
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
  Table table_{.name = "groups", .columns = {"budget m", "entropy difference", "later ones", "reward variance"}};
};

}  // namespace

std::unique_ptr<Analysis> aepo_budget() { return std::make_unique<AepoBudget>(); }

}  // namespace carnot
