// studies/aepo_branches.cpp -- AEPO: rollouts collapse onto chains of uncertain turns, arXiv:2510.14545
#include <map>

#include "carnot/core/base/random.h"
#include "carnot/studies/branch_statistics.h"
#include "carnot/studies/distribution.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/rollout_analysis.h"

namespace carnot {
namespace {

struct Received {
  std::int64_t branches = 0;
  std::int64_t groups = 0;
};

/// What the runs of one label show.
struct Branching {
  std::vector<std::vector<double>> entropies{};  ///< by trajectory, of turns after tool calls
  std::map<int, Received> received{};            ///< by the number of receivers in their group
};

std::vector<double> joined(const std::vector<std::vector<double>>& lists) {
  std::vector<double> all;
  for (const auto& one : lists) all.insert(all.end(), one.begin(), one.end());
  return all;
}

/// The same turns dealt out again over the trajectories: what chance alone makes of them.
std::vector<std::vector<double>> dealt_anew(std::vector<std::vector<double>> entropies) {
  std::vector<double> all = joined(entropies);
  RandomStream random(derive_seed(0, "aepo-branches"));
  random.shuffle(all);
  auto next = all.begin();
  for (auto& one : entropies)
    for (double& x : one) x = *next++;
  return entropies;
}

class AepoBranches final : public RolloutAnalysis {
  void options(FieldVisitor& visit) override {
    visit.field("quantiles", quantiles_, "a turn is uncertain above this share of all turns after tool calls",
                between(0, 1));
    visit.field("few", few_, "branches that go to at most so many trajectories of a group are concentrated",
                at_least(1));
  }

  void add(const StudiedStep& step) override {
    Branching& branching = by_label_[step.run.label];
    for (const int i : step.counting) branching.entropies.push_back(tool_turn_entropies(step.all[i]));
    for (const Group& group : step.file.groups) {
      const BranchReceivers found = branch_receivers(group);
      if (found.branches == 0) continue;
      branching.received[found.receivers].branches += found.branches;
      ++branching.received[found.receivers].groups;
    }
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report;
    Table consecutive{.name = "consecutive uncertain turns",
                      .columns = {"runs", "above quantile", "threshold", "uncertain turns", "consecutive", "share",
                                  "share by chance"}};
    Table receivers{.name = "receivers of branches",
                    .columns = {"runs", "receiving trajectories", "groups", "branches", "share of branches"}};
    for (const std::string& label : labels_) {
      const auto found = by_label_.find(label);
      if (found == by_label_.end()) continue;
      add_streaks(label, found->second, report, consecutive);
      add_receivers(label, found->second, report, receivers);
    }
    report.tables = {std::move(consecutive), std::move(receivers)};
    report.figures = {{.title = "How many trajectories of a group the branches go to",
                       .table = "receivers of branches",
                       .draw = Draw::Bars,
                       .x = "receiving trajectories",
                       .y = {"share of branches"},
                       .series = {"runs"},
                       .y_axis = share_axis()}};
    report.notes = {
        "Uncertain: the entropy of a turn's first tokens, as the branch policy measures it, lies above a quantile of "
        "all turns after tool calls in the same runs; the paper does not say where its line is.",
        "By chance: the same turns dealt out again over the trajectories.",
        "To compare ARPO with AEPO, give run folders of both."};
    return report;
  }

  void add_streaks(const std::string& label, const Branching& one, AnalysisReport& report, Table& table) const {
    const std::vector<double> all = joined(one.entropies);
    if (all.empty()) return;
    const auto chance = dealt_anew(one.entropies);
    for (const double q : quantiles_) {
      const double threshold = quantile(all, q);
      const Streaks found = streaks(one.entropies, threshold), expected = streaks(chance, threshold);
      table.add(label, q, threshold, found.high, found.consecutive, found.share(), expected.share());
      report.find(label + ": uncertain turns (top " + percent_text(1 - q) + ") directly behind another", "56.5 %",
                  share_text(found.consecutive, found.high) + ", by chance " + percent_text(expected.share()));
    }
  }

  void add_receivers(const std::string& label, const Branching& one, AnalysisReport& report, Table& table) const {
    std::int64_t all = 0, concentrated = 0;
    for (const auto& [receivers, count] : one.received) {
      all += count.branches;
      concentrated += receivers <= few_ ? count.branches : 0;
    }
    for (const auto& [receivers, count] : one.received)
      table.add(label, receivers, count.groups, count.branches,
                static_cast<double>(count.branches) / static_cast<double>(all));
    report.find(label + ": branches in groups where at most " + std::to_string(few_) + " trajectories receive any",
                "93.4 % (ARPO)", all == 0 ? "no branches" : share_text(concentrated, all));
  }

  std::vector<double> quantiles_{0.5, 0.8};
  int few_ = 3;
  std::map<std::string, Branching> by_label_{};
};

}  // namespace

std::unique_ptr<Analysis> aepo_branches() { return std::make_unique<AepoBranches>(); }

}  // namespace carnot
