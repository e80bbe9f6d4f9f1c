// study/aepo_branches.cpp -- AEPO: rollouts collapse onto chains of uncertain turns, arXiv:2510.14545
#include <algorithm>
#include <map>

#include "carnot/base/random.h"
#include "carnot/chart/bar_chart.h"
#include "carnot/chart/scale.h"
#include "carnot/study/branch_statistics.h"
#include "carnot/study/distribution.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_steps.h"
#include "carnot/study/text.h"

namespace carnot {
namespace {

/// What the runs of one label show.
struct Branching {
  std::vector<std::vector<double>> entropies{};  ///< by trajectory, of turns behind tool calls
  std::map<int, std::int64_t> branches{};        ///< by the number of receivers in their group
  std::map<int, std::int64_t> groups{};          ///< the same

  std::int64_t all_branches() const {
    std::int64_t sum = 0;
    for (const auto& [receivers, count] : branches) sum += count;
    return sum;
  }
};

/// The same turns dealt out anew over the trajectories: what chance alone makes of them.
std::vector<std::vector<double>> dealt_anew(std::vector<std::vector<double>> entropies) {
  std::vector<double> all;
  for (const auto& one : entropies) all.insert(all.end(), one.begin(), one.end());
  RandomStream random(derive_seed(0, "aepo-branches"));
  random.shuffle(all);
  auto next = all.begin();
  for (auto& one : entropies)
    for (double& x : one) x = *next++;
  return entropies;
}

class AepoBranches final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    range_.fields(visit);
    visit.field("quantiles", quantiles_, "a turn is uncertain above this share of all turns after tool calls",
                between(0, 1));
    visit.field("few", few_, "branches that go to at most so many trajectories of a group are concentrated",
                at_least(1));
  }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    std::map<std::string, Branching> by_label;
    const auto runs = visit_rollouts(input.paths, range_, [&](const StudiedStep& step) -> Status {
      Branching& branching = by_label[step.run.label];
      for (const int i : step.counting) branching.entropies.push_back(tool_turn_entropies(step.all[i]));
      for (const Group& group : step.file.groups) {
        const BranchReceivers found = branch_receivers(group);
        if (found.branches == 0) continue;
        branching.branches[found.receivers] += found.branches;
        ++branching.groups[found.receivers];
      }
      return Done{};
    });
    if (!runs) return runs.error();
    AnalysisReport report;
    ResultTable consecutive{.name = "consecutive uncertain turns",
                            .columns = {"runs", "above quantile", "threshold", "uncertain turns", "consecutive",
                                        "share", "share by chance"}};
    ResultTable receivers{.name = "receivers of branches",
                          .columns = {"runs", "receiving trajectories", "groups", "branches", "share of branches"}};
    BarChart bars{.title = "How many trajectories of a group the branches go to",
                  .x_label = "receiving trajectories",
                  .y = {.label = "share of branches", .low = 0, .percent = true}};
    add_categories(by_label, bars);
    for (const std::string& label : labels_of(*runs)) {
      const auto found = by_label.find(label);
      if (found == by_label.end()) continue;
      add_streaks(label, found->second, report, consecutive);
      add_receivers(label, found->second, report, receivers, bars);
    }
    report.figures = {{svg(bars), ""}};
    report.tables = {std::move(consecutive), std::move(receivers)};
    report.notes = {
        "Uncertain: the entropy of a turn's first tokens, as the branch policy measures it, lies above a quantile of "
        "all turns behind tool calls in the same runs; the paper does not say where its line is.",
        "By chance: the same turns dealt out anew over the trajectories.",
        "To compare ARPO with AEPO, give run folders of both."};
    return report;
  }

 private:
  static void add_categories(const std::map<std::string, Branching>& by_label, BarChart& bars) {
    int most = 1;
    for (const auto& [label, one] : by_label)
      if (!one.branches.empty()) most = std::max(most, one.branches.rbegin()->first);
    for (int n = 1; n <= most; ++n) bars.categories.push_back(std::to_string(n));
  }

  void add_streaks(const std::string& label, const Branching& one, AnalysisReport& report, ResultTable& table) const {
    std::vector<double> all;
    for (const auto& entropies : one.entropies) all.insert(all.end(), entropies.begin(), entropies.end());
    if (all.empty()) return;
    const auto chance = dealt_anew(one.entropies);
    for (const double q : quantiles_) {
      const double threshold = quantile(all, q);
      const Streaks found = streaks(one.entropies, threshold), expected = streaks(chance, threshold);
      table.rows.push_back({label, q, threshold, static_cast<double>(found.high),
                            static_cast<double>(found.consecutive), found.share(), expected.share()});
      report.findings.push_back(
          {label + ": uncertain turns (top " + percent_text(1 - q) + ") directly behind another", "56.5 %",
           share_text(found.consecutive, found.high) + ", by chance " + percent_text(expected.share())});
    }
  }

  void add_receivers(const std::string& label, const Branching& one, AnalysisReport& report, ResultTable& table,
                     BarChart& bars) const {
    const std::int64_t all = one.all_branches();
    std::int64_t concentrated = 0;
    BarSeries series{.name = label, .values = std::vector<double>(bars.categories.size(), 0.0)};
    for (const auto& [receivers, count] : one.branches) {
      const double share = static_cast<double>(count) / static_cast<double>(all);
      table.rows.push_back({label, static_cast<double>(receivers), static_cast<double>(one.groups.at(receivers)),
                            static_cast<double>(count), share});
      series.values[static_cast<std::size_t>(receivers) - 1] = share;
      concentrated += receivers <= few_ ? count : 0;
    }
    bars.series.push_back(std::move(series));
    report.findings.push_back(
        {label + ": branches in groups where at most " + std::to_string(few_) + " trajectories receive any",
         "93.4 % (ARPO)", all == 0 ? "no branches" : share_text(concentrated, all)});
  }

  StepRange range_{};
  std::vector<double> quantiles_{0.5, 0.8};
  int few_ = 3;
};

}  // namespace

AnalysisEntry aepo_branches_entry() {
  return {.name = "aepo-branches",
          .paper = "2510.14545",
          .needs = AnalysisNeeds::Rollouts,
          .summary = "chains of uncertain turns, and how many trajectories of a group receive branches",
          .make = make_analysis<AepoBranches>};
}

}  // namespace carnot
