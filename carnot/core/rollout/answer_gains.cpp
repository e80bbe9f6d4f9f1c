#include "carnot/core/rollout/answer_gains.h"

#include <cmath>

#include "carnot/core/data/trajectory.h"

namespace carnot {
namespace {

/// Turns that another follows, on the ways to leaves that count; by tree. A parent comes before its children.
std::vector<std::vector<int>> followed_turns(const Group& group) {
  std::vector<std::vector<int>> all;
  for (const Tree& tree : group.trees) {
    std::vector<int>& turns = all.emplace_back();
    std::vector<bool> seen(tree.turns.size(), false);
    for (std::size_t leaf = 0; leaf < tree.leaves.size(); ++leaf) {
      if (!tree.leaves[leaf].is_included()) continue;
      const std::vector<int> way = path(tree, static_cast<int>(leaf));
      for (std::size_t k = 0; k + 1 < way.size(); ++k) {
        if (!seen[way[k]]) turns.push_back(way[k]);
        seen[way[k]] = true;
      }
    }
  }
  return all;
}

bool has_included_leaf(const Group& group) {
  for (const Tree& tree : group.trees)
    for (const Leaf& leaf : tree.leaves)
      if (leaf.is_included()) return true;
  return false;
}

}  // namespace

bool write_info_gain(Group& group, const AnswerLogProbs& log_probs, const InfoGainOptions& gain) {
  if (!has_included_leaf(group)) return true;
  const auto followed = followed_turns(group);
  if (!log_probs.prompt) return false;
  for (std::size_t t = 0; t < followed.size(); ++t)
    for (const int turn : followed[t])
      if (!log_probs.turns[t][turn]) return false;
  const auto likelihood = [&](double log_prob) {
    return gain.measure == GainMeasure::Probability ? std::exp(log_prob) : log_prob;
  };
  group.query_baseline = likelihood(*log_probs.prompt);
  for (std::size_t t = 0; t < followed.size(); ++t) {
    for (const int index : followed[t]) {
      Turn& turn = group.trees[t].turns[index];
      const double after = likelihood(*log_probs.turns[t][index]);
      if (turn.parent >= 0)
        turn.info_gain = after - likelihood(*log_probs.turns[t][turn.parent]);
      else if (gain.query_baseline)
        turn.info_gain = after - *group.query_baseline;
    }
  }
  return true;
}

}  // namespace carnot
