// studies/actfocus_energy.cpp -- ActFocus: where in a response the reference's uncertainty meets reward,
// arXiv:2605.14558
#include <array>
#include <map>

#include "carnot/core/base/statistics.h"
#include "carnot/studies/correlation.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/rollout_analysis.h"

namespace carnot {
namespace {

struct Scope {
  SampledKind kind;
  std::string name;
  std::string paper;
};
const std::array<Scope, 3> kScopes = {{{SampledKind::Any, "all sampled tokens", "near 0"},
                                       {SampledKind::Think, "think tokens", "near 0"},
                                       {SampledKind::Action, "action tokens", "+0.537 (Sokoban, 3B)"}}};

/// Of one group.
struct Measured {
  std::vector<double> energies{}, rewards{};
};

class ActfocusEnergy final : public RolloutAnalysis {
 public:
  ActfocusEnergy() : RolloutAnalysis({.columns = {Column::EnergyReference}}) {}

 private:
  void add(const StudiedStep& step) override {
    for (const Scope& scope : kScopes) {
      std::map<int, Measured> by_group;
      for (const int i : step.counting) {
        auto& [energies, rewards] = by_group[step.all[i].group_index];
        const std::vector<double> values = sampled_values(step.all[i], Column::EnergyReference, scope.kind);
        energies.insert(energies.end(), values.begin(), values.end());
        rewards.push_back(step.all[i].leaf().score);
      }
      for (const auto& [group, found] : by_group)
        if (!found.energies.empty() && found.rewards.size() > 1)
          table_.add(scope.name, mean(found.energies), std_population(found.rewards));
    }
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report{.tables = {table_}};
    report.tables[0].rows.clear();
    for (const Scope& scope : kScopes) {
      const Table own = table_.only("tokens", scope.name);
      report.find("Spearman of energy and reward deviation: " + scope.name, scope.paper,
                  correlation_text(resampled_spearman(own.numbers("mean energy"), own.numbers("reward deviation"))));
      for (const auto& row : own.rows) report.tables[0].add_row(row);
    }
    report.figures = {{.title = "Energy and spread of rewards, a point per group",
                       .table = "groups",
                       .draw = Draw::Points,
                       .x = "mean energy",
                       .y = {"reward deviation"},
                       .series = {"tokens"},
                       .x_axis = {.label = "mean reference energy"},
                       .y_axis = {.label = "deviation of the group's rewards", .low = 0}}};
    report.notes = {
        "Energy: minus logsumexp of the frozen reference's raw logits; higher where it is less sure. Brackets hold the "
        "95 % interval of groups taken as independent; groups of neighbouring steps are not quite."};
    return report;
  }

  Table table_{.name = "groups", .columns = {"tokens", "mean energy", "reward deviation"}};
};

}  // namespace

std::unique_ptr<Analysis> actfocus_energy() { return std::make_unique<ActfocusEnergy>(); }

}  // namespace carnot
