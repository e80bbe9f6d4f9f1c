// studies/a2tgpo_similarity.cpp -- A2TGPO: are turns of one index alike?, arXiv:2605.06200
#include <array>
#include <map>

#include "carnot/core/base/statistics.h"
#include "carnot/studies/entries.h"
#include "carnot/studies/rollout_analysis.h"
#include "carnot/studies/token_sets.h"

namespace carnot {
namespace {

constexpr std::array<const char*, 4> kContents = {"think", "query", "result", "all three"};

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

/// Similarities of pairs of turns, each from another rollout of one task, by content.
struct Similarities {
  std::array<std::vector<double>, kContents.size()> same{}, different{};
};

/// A turn in its rollout. Turns that two trajectories share are one turn, not a similar one.
struct PlacedTurn {
  int trajectory = 0;
  int index = 0;
  std::pair<int, int> identity{};  ///< tree, turn
  TurnSets sets{};
};

class A2tgpoSimilarity final : public RolloutAnalysis {
  void add(const StudiedStep& step) override {
    std::map<int, std::vector<PlacedTurn>> by_group;
    for (const int i : step.counting)
      for (int k = 0; k < step.all[i].num_turns(); ++k) {
        const Trajectory& one = step.all[i];
        by_group[one.group_index].push_back({i, k, {one.tree_index, one.turns[k]}, sets_of(one.turn(k))});
      }
    for (const auto& [group, turns] : by_group)
      for (std::size_t a = 0; a < turns.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) compare(turns[a], turns[b], step.source.step);
  }

  void compare(const PlacedTurn& a, const PlacedTurn& b, std::int64_t step) {
    if (a.trajectory == b.trajectory || a.identity == b.identity) return;
    for (std::size_t c = 0; c < kContents.size(); ++c) {
      if (a.sets[c].empty() || b.sets[c].empty()) continue;
      for (Similarities* to : {&by_step_[step], &all_})
        (a.index == b.index ? to->same : to->different)[c].push_back(jaccard(a.sets[c], b.sets[c]));
    }
  }

  Result<AnalysisReport> report(const AnalysisInput&) const override {
    AnalysisReport report;
    Table table{.name = "similarity by step",
                .columns = {"step", "content", "same index", "pairs", "different index", "other pairs"}};
    for (const auto& [step, found] : by_step_)
      for (std::size_t c = 0; c < kContents.size(); ++c)
        table.add(step, kContents[c], mean(found.same[c]), found.same[c].size(), mean(found.different[c]),
                  found.different[c].size());
    for (std::size_t c = 0; c < kContents.size(); ++c)
      report.find(std::string(kContents[c]) + ": same index against different index",
                  "clearly higher at the same index, from step 1",
                  number_text(mean(all_.same[c])) + " against " + number_text(mean(all_.different[c])));
    report.tables = {std::move(table)};
    report.figures = {{.title = "Jaccard similarity of turns from different rollouts of one task",
                       .table = "similarity by step",
                       .x = "step",
                       .y = {"same index", "different index"},
                       .series = {"content"},
                       .y_axis = {.label = "similarity", .low = 0, .high = 1}}};
    report.notes = {
        "Sets of tokens of what the policy thought, of what it asked, and of what came back. Pairs are turns of two "
        "rollouts of one task; a turn that both share is left out."};
    return report;
  }

  std::map<std::int64_t, Similarities> by_step_{};
  Similarities all_{};
};

}  // namespace

std::unique_ptr<Analysis> a2tgpo_similarity() { return std::make_unique<A2tgpoSimilarity>(); }

}  // namespace carnot
