// study/aepo_diversity.cpp -- AEPO: how many different rollouts there are, arXiv:2510.14545
#include <map>

#include "carnot/base/statistics.h"
#include "carnot/chart/bar_chart.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_steps.h"
#include "carnot/study/text.h"
#include "carnot/study/token_sets.h"

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

class AepoDiversity final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override {
    range_.fields(visit);
    visit.field("radius", radius_, "Jaccard distance within which rollouts are neighbours", between(0, 1));
    visit.field("neighbours", neighbours_, "that make a core of a cluster, itself included", at_least(1));
  }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    std::map<std::string, Diversity> by_label;
    const auto runs = visit_rollouts(input.paths, range_, [&](const StudiedStep& step) -> Status {
      std::map<int, std::vector<TokenSet>> by_group;
      for (const int i : step.counting) {
        const Trajectory& one = step.all[i];
        by_group[one.group_index].push_back(sampled_set(one));
      }
      Diversity& diversity = by_label[step.run.label];
      for (const auto& [group, sets] : by_group) add_group(sets, diversity);
      return Done{};
    });
    if (!runs) return runs.error();
    return report_of(*runs, by_label);
  }

 private:
  void add_group(const std::vector<TokenSet>& sets, Diversity& diversity) const {
    const Clustering found = dbscan(sets, radius_, neighbours_);
    diversity.clusters.push_back(found.clusters + found.noise);
    diversity.noise.push_back(found.noise);
    diversity.distance.push_back(mean_distance(sets));
  }

  static AnalysisReport report_of(const std::vector<StudiedRun>& runs,
                                  const std::map<std::string, Diversity>& by_label) {
    AnalysisReport report;
    ResultTable table{.name = "diversity",
                      .columns = {"runs", "groups", "clusters a group", "of those single rollouts", "mean distance"}};
    BarChart bars{
        .title = "Clusters of rollouts", .y = {.label = "clusters a group", .low = 0}, .series = {{.name = ""}}};
    for (const std::string& label : labels_of(runs)) {
      const auto found = by_label.find(label);
      if (found == by_label.end()) continue;
      const Diversity& one = found->second;
      const Interval interval = mean_interval(one.clusters);
      table.rows.push_back(
          {label, static_cast<double>(one.clusters.size()), mean(one.clusters), mean(one.noise), mean(one.distance)});
      report.findings.push_back(
          {label + ": clusters a group", "62 (AEPO) against 54 (ARPO), over a larger set", mean_text(one.clusters)});
      bars.categories.push_back(label);
      bars.series[0].values.push_back(mean(one.clusters));
      bars.series[0].low.push_back(interval.low);
      bars.series[0].high.push_back(interval.high);
    }
    report.figures = {{svg(bars), "95 % interval over groups."}};
    report.tables = {std::move(table)};
    report.notes = {
        "The paper clusters embeddings of trajectories; here they are sets of sampled tokens under Jaccard's distance, "
        "clustered within each group. A rollout that is in no cluster counts as one of its own.",
        "Compare runs of one budget: a group of more rollouts has more clusters."};
    return report;
  }

  StepRange range_{};
  double radius_ = 0.3;
  int neighbours_ = 2;
};

}  // namespace

AnalysisEntry aepo_diversity_entry() {
  return {.name = "aepo-diversity",
          .paper = "2510.14545",
          .needs = AnalysisNeeds::Rollouts,
          .summary = "clusters of rollouts of one task, by DBSCAN over sets of tokens",
          .make = make_analysis<AepoDiversity>};
}

}  // namespace carnot
