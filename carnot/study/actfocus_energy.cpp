// study/actfocus_energy.cpp -- ActFocus: where in a response the reference's uncertainty meets reward, arXiv:2605.14558
#include <array>
#include <map>

#include "carnot/base/statistics.h"
#include "carnot/study/correlation.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_analysis.h"

namespace carnot {
namespace {

/// Groups with tokens of a kind: their mean energy, and how far their rewards spread.
struct Scope {
  SampledKind kind;
  std::string name;
  std::string paper;
  std::vector<double> energy{}, deviation{};

  void add(const StudiedStep& step);
};

void Scope::add(const StudiedStep& step) {
  struct Measured {
    std::vector<double> energies{}, scores{};
  };
  std::map<int, Measured> by_group;
  for (const int i : step.counting) {
    auto& [energies, scores] = by_group[step.all[i].group_index];
    const std::vector<double> values = sampled_values(step.all[i], Column::EnergyReference, kind);
    energies.insert(energies.end(), values.begin(), values.end());
    scores.push_back(step.all[i].leaf().score);
  }
  for (const auto& [group, found] : by_group) {
    if (found.energies.empty() || found.scores.size() < 2) continue;
    energy.push_back(mean(found.energies));
    deviation.push_back(std_population(found.scores));
  }
}

class ActfocusEnergy final : public RolloutAnalysis {
 public:
  ActfocusEnergy() : RolloutAnalysis({.columns = {Column::EnergyReference}}) {}

 private:
  void add(const StudiedStep& step) override {
    for (Scope& scope : scopes_) scope.add(step);
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report;
    Table table{.name = "groups", .columns = {"tokens", "mean energy", "reward deviation"}};
    for (const Scope& scope : scopes_) {
      report.find("Spearman of energy and reward deviation: " + scope.name, scope.paper,
                  correlation_text(spearman(scope.energy, scope.deviation), scope.energy.size()));
      for (std::size_t g = 0; g < scope.energy.size(); ++g) table.add(scope.name, scope.energy[g], scope.deviation[g]);
    }
    report.tables = {std::move(table)};
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

  std::array<Scope, 3> scopes_ = {{{SampledKind::Any, "all sampled tokens", "near 0"},
                                   {SampledKind::Think, "think tokens", "near 0"},
                                   {SampledKind::Action, "action tokens", "+0.537 (Sokoban, 3B)"}}};
};

}  // namespace

std::unique_ptr<Analysis> actfocus_energy() { return std::make_unique<ActfocusEnergy>(); }

}  // namespace carnot
