// study/actfocus_energy.cpp -- ActFocus: where in a response the reference's uncertainty meets reward, arXiv:2605.14558
#include <array>

#include "carnot/base/statistics.h"
#include "carnot/chart/plot.h"
#include "carnot/study/correlation.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_steps.h"

namespace carnot {
namespace {

struct Scope {
  SampledKind kind;
  std::string_view name;
  std::string_view paper;
};
constexpr std::array<Scope, 3> kScopes = {{{SampledKind::Any, "all sampled tokens", "near 0"},
                                           {SampledKind::Think, "think tokens", "near 0"},
                                           {SampledKind::Action, "action tokens", "+0.537 (Sokoban, 3B)"}}};

/// Groups with tokens of the kind: their mean energy, and how far their rewards spread.
struct Pairs {
  std::vector<double> energy{}, deviation{};
};

class ActfocusEnergy final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override { range_.fields(visit); }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    std::array<Pairs, kScopes.size()> pairs;
    const auto runs = visit_rollouts(input.paths, range_, [&](const StudiedStep& step) -> Status {
      if (const Status status = require_columns(step, {Column::EnergyReference}); !status) return status;
      for (std::size_t s = 0; s < kScopes.size(); ++s) add_groups(step, kScopes[s].kind, pairs[s]);
      return Done{};
    });
    if (!runs) return runs.error();
    AnalysisReport report;
    ResultTable table{.name = "groups", .columns = {"tokens", "mean energy", "reward deviation"}};
    Plot plot{.title = "Energy and spread of rewards, a point per group",
              .x = {.label = "mean reference energy"},
              .y = {.label = "deviation of the group's rewards"}};
    for (std::size_t s = 0; s < kScopes.size(); ++s) {
      const std::string name(kScopes[s].name);
      report.findings.push_back(
          {"Spearman of energy and reward deviation: " + name, std::string(kScopes[s].paper),
           correlation_text(spearman(pairs[s].energy, pairs[s].deviation), pairs[s].energy.size())});
      for (std::size_t g = 0; g < pairs[s].energy.size(); ++g)
        table.rows.push_back({name, pairs[s].energy[g], pairs[s].deviation[g]});
      plot.series.push_back({.name = name,
                             .x = pairs[s].energy,
                             .y = pairs[s].deviation,
                             .draw = Draw::Points,
                             .width = 3,
                             .opacity = 0.4});
    }
    report.figures = {{svg(plot), ""}};
    report.tables = {std::move(table)};
    report.notes = {
        "Energy: minus logsumexp of the frozen reference's raw logits; higher where it is less sure. Brackets hold the "
        "95 % interval of groups taken as independent; groups of neighbouring steps are not quite."};
    return report;
  }

 private:
  static void add_groups(const StudiedStep& step, SampledKind kind, Pairs& pairs) {
    std::vector<std::vector<double>> energies(step.file.groups.size()), scores(step.file.groups.size());
    for (const int i : step.counting) {
      const Trajectory& one = step.all[i];
      const auto group = static_cast<std::size_t>(one.group_index);
      const std::vector<double> values = sampled_values(one, Column::EnergyReference, kind);
      energies[group].insert(energies[group].end(), values.begin(), values.end());
      scores[group].push_back(one.leaf().score);
    }
    for (std::size_t g = 0; g < energies.size(); ++g) {
      if (energies[g].empty() || scores[g].size() < 2) continue;
      pairs.energy.push_back(mean(energies[g]));
      pairs.deviation.push_back(std_population(scores[g]));
    }
  }

  StepRange range_{};
};

}  // namespace

AnalysisEntry actfocus_energy_entry() {
  return {.name = "actfocus-energy",
          .paper = "2605.14558",
          .needs = AnalysisNeeds::Rollouts,
          .summary = "does the reference's energy follow the spread of rewards: all, think and action tokens",
          .make = make_analysis<ActfocusEnergy>};
}

}  // namespace carnot
