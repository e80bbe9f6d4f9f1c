// studies/aepo_diversity.cpp -- AEPO: how many different rollouts there are, arXiv:2510.14545
#include <map>

#include "carnot/core/base/statistics.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/rollout_analysis.h"
#include "carnot/studies/token_sets.h"

namespace carnot {
namespace {

/// The runs of one label, group by group.
struct Diversity {
  std::vector<double> clusters{};  ///< noise counts as a cluster each
  std::vector<double> noise{};
  std::vector<double> distance{};  ///< mean over pairs
};

TokenSet sampled_set(const Trajectory& trajectory) {
  const std::vector<TokenId> tokens = trajectory.tokens();
  const std::vector<bool> sampled = trajectory.sampled();
  std::vector<TokenId> own;
  for (std::size_t t = 0; t < tokens.size(); ++t)
    if (sampled[t]) own.push_back(tokens[t]);
  return token_set(own);
}

double mean_distance(const std::vector<TokenSet>& sets) {
  std::vector<double> distances;
  for (std::size_t i = 0; i < sets.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) distances.push_back(1 - jaccard(sets[i], sets[j]));
  return mean(distances);
}

class AepoDiversity final : public RolloutAnalysis {
  void options(FieldVisitor& visit) override {
    visit.field("radius", radius_, "Jaccard distance within which rollouts are neighbours", between(0, 1));
    visit.field("neighbours", neighbours_, "that make a core of a cluster, itself included", at_least(1));
  }

  void add(const StudiedStep& step) override {
    std::map<int, std::vector<TokenSet>> by_group;
    for (const int i : step.counting) by_group[step.all[i].group_index].push_back(sampled_set(step.all[i]));
    Diversity& diversity = by_label_[step.run.label];
    for (const auto& [group, sets] : by_group) {
      const Clustering found = dbscan(sets, radius_, neighbours_);
      diversity.clusters.push_back(found.clusters + found.noise);
      diversity.noise.push_back(found.noise);
      diversity.distance.push_back(mean_distance(sets));
    }
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report;
    Table table{
        .name = "diversity",
        .columns = {"runs", "groups", "clusters a group", "low", "high", "of those single rollouts", "mean distance"}};
    for (const std::string& label : labels_) {
      const auto found = by_label_.find(label);
      if (found == by_label_.end()) continue;
      const auto& [clusters, noise, distance] = found->second;
      const Interval interval = mean_interval(clusters);
      table.add(label, clusters.size(), mean(clusters), interval.low, interval.high, mean(noise), mean(distance));
      report.find(label + ": clusters a group", "62 (AEPO) against 54 (ARPO), over a larger set", mean_text(clusters));
    }
    report.tables = {std::move(table)};
    report.figures = {{.title = "Clusters of rollouts",
                       .caption = "95 % interval over groups.",
                       .table = "diversity",
                       .draw = Draw::Bars,
                       .x = "runs",
                       .y = {"clusters a group"},
                       .low = "low",
                       .high = "high",
                       .y_axis = {.low = 0}}};
    report.notes = {
        "The paper clusters embeddings of trajectories; here they are sets of sampled tokens under Jaccard's distance, "
        "clustered within each group. A rollout that is in no cluster counts as a separate one.",
        "Compare runs of one budget: a group of more rollouts has more clusters."};
    return report;
  }

  double radius_ = 0.3;
  int neighbours_ = 2;
  std::map<std::string, Diversity> by_label_{};
};

}  // namespace

std::unique_ptr<Analysis> aepo_diversity() { return std::make_unique<AepoDiversity>(); }

}  // namespace carnot
