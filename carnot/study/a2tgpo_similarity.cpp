// study/a2tgpo_similarity.cpp -- A2TGPO: are turns of one index alike?, arXiv:2605.06200
#include <array>
#include <map>

#include "carnot/base/statistics.h"
#include "carnot/chart/plot.h"
#include "carnot/chart/scale.h"
#include "carnot/study/entries.h"
#include "carnot/study/rollout_steps.h"
#include "carnot/study/token_sets.h"

namespace carnot {
namespace {

constexpr std::array<std::string_view, 4> kContents = {"think", "query", "result", "all three"};

/// The sets of one turn, by content.
using TurnSets = std::array<TokenSet, kContents.size()>;

TurnSets sets_of(const Turn& turn) {
  std::array<std::vector<TokenId>, kContents.size()> tokens;
  for (const Span& span : turn.spans)
    for (int t = span.begin; t < span.end; ++t) {
      const bool sampled = t >= turn.sampled_begin && t < turn.sampled_end;
      const bool result = span.kind == SpanKind::Observation;
      if (!sampled && !result) continue;
      const std::size_t content = result ? 2 : span.kind == SpanKind::Action ? 1 : 0;
      for (const std::size_t to : {content, std::size_t{3}}) tokens[to].push_back(turn.tokens[t]);
    }
  TurnSets sets;
  for (std::size_t c = 0; c < sets.size(); ++c) sets[c] = token_set(tokens[c]);
  return sets;
}

/// Similarities of pairs of turns, each from another rollout of one task.
struct Similarities {
  std::array<std::vector<double>, kContents.size()> same{}, different{};

  void add(const Similarities& other) {
    for (std::size_t c = 0; c < kContents.size(); ++c) {
      same[c].insert(same[c].end(), other.same[c].begin(), other.same[c].end());
      different[c].insert(different[c].end(), other.different[c].begin(), other.different[c].end());
    }
  }
};

/// A turn in its rollout. Turns that two trajectories share are one turn, not a similar one.
struct PlacedTurn {
  std::size_t trajectory = 0;
  int index = 0;
  std::pair<int, int> identity{};  ///< tree, turn
  TurnSets sets{};
};

void compare(const std::vector<PlacedTurn>& turns, Similarities& found) {
  for (std::size_t i = 0; i < turns.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (turns[i].trajectory == turns[j].trajectory || turns[i].identity == turns[j].identity) continue;
      auto& to = turns[i].index == turns[j].index ? found.same : found.different;
      for (std::size_t c = 0; c < kContents.size(); ++c)
        if (!turns[i].sets[c].empty() && !turns[j].sets[c].empty())
          to[c].push_back(jaccard(turns[i].sets[c], turns[j].sets[c]));
    }
}

class A2tgpoSimilarity final : public Analysis {
 public:
  void fields(FieldVisitor& visit) override { range_.fields(visit); }

  Result<AnalysisReport> run(const AnalysisInput& input) const override {
    std::map<std::int64_t, Similarities> by_step;
    const auto runs = visit_rollouts(input.paths, range_, [&](const StudiedStep& step) -> Status {
      std::map<int, std::vector<PlacedTurn>> by_group;
      for (const int i : step.counting) {
        const Trajectory& one = step.all[i];
        for (int k = 0; k < one.num_turns(); ++k)
          by_group[one.group_index].push_back({.trajectory = static_cast<std::size_t>(i),
                                               .index = k,
                                               .identity = {one.tree_index, one.turns[k]},
                                               .sets = sets_of(one.turn(k))});
      }
      for (const auto& [group, turns] : by_group) compare(turns, by_step[step.source.step]);
      return Done{};
    });
    if (!runs) return runs.error();
    return report_of(by_step);
  }

 private:
  static AnalysisReport report_of(const std::map<std::int64_t, Similarities>& by_step) {
    AnalysisReport report;
    ResultTable table{.name = "similarity by step",
                      .columns = {"step", "content", "same index", "pairs", "different index", "other pairs"}};
    Plot plot{.title = "Jaccard similarity of turns from different rollouts of one task",
              .x = {.label = "step"},
              .y = {.label = "similarity", .low = 0, .high = 1}};
    Similarities all;
    for (std::size_t c = 0; c < kContents.size(); ++c)
      for (const bool same : {true, false})
        plot.series.push_back({.name = std::string(kContents[c]) + (same ? ", same index" : ", different"),
                               .colour = static_cast<int>(c),
                               .width = same ? 2.5 : 1});
    for (const auto& [step, found] : by_step) {
      all.add(found);
      for (std::size_t c = 0; c < kContents.size(); ++c) {
        table.rows.push_back({static_cast<double>(step), std::string(kContents[c]), mean(found.same[c]),
                              static_cast<double>(found.same[c].size()), mean(found.different[c]),
                              static_cast<double>(found.different[c].size())});
        for (const bool same : {true, false}) {
          Series& series = plot.series[2 * c + (same ? 0 : 1)];
          series.x.push_back(static_cast<double>(step));
          series.y.push_back(mean(same ? found.same[c] : found.different[c]));
        }
      }
    }
    for (std::size_t c = 0; c < kContents.size(); ++c)
      report.findings.push_back({std::string(kContents[c]) + ": same index against different index",
                                 "clearly higher at the same index, from step 1",
                                 number_text(mean(all.same[c])) + " against " + number_text(mean(all.different[c]))});
    report.figures = {{svg(plot), ""}};
    report.tables = {std::move(table)};
    report.notes = {
        "Sets of tokens of what the policy thought, of what it asked, and of what came back. Pairs are turns of two "
        "rollouts of one task; a turn that both share is left out."};
    return report;
  }

  StepRange range_{};
};

}  // namespace

AnalysisEntry a2tgpo_similarity_entry() {
  return {.name = "a2tgpo-similarity",
          .paper = "2605.06200",
          .needs = AnalysisNeeds::Rollouts,
          .summary = "how alike turns of one index are across rollouts, against turns of different index",
          .make = make_analysis<A2tgpoSimilarity>};
}

}  // namespace carnot
