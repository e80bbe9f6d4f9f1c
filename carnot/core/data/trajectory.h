// data/trajectory.h -- a trajectory as credit rules and packing read it: the path to a leaf, token by token.
#pragma once

#include <span>
#include <vector>

#include "carnot/core/data/tree.h"

namespace carnot {

/// A view of one leaf's path. Valid while its groups exist and are unchanged.
struct Trajectory {
  const Group* group = nullptr;
  const Tree* tree = nullptr;
  int group_index = 0;
  int tree_index = 0;               ///< in the group
  int leaf_index = 0;               ///< in the tree
  std::vector<int> turns{};         ///< turn indices from the root to the leaf
  std::vector<int> turn_offsets{};  ///< where turns[k]'s tokens begin in the trajectory; one more entry for the end

  const Leaf& leaf() const { return tree->leaves[leaf_index]; }
  const Turn& turn(int k) const { return tree->turns[turns[k]]; }
  int num_turns() const { return static_cast<int>(turns.size()); }
  int num_tokens() const { return turn_offsets.back(); }
  int num_sampled() const;

  /// The range of turn k's sampled tokens in the trajectory: [begin, end).
  int sampled_begin(int k) const { return turn_offsets[k] + turn(k).sampled_begin; }
  int sampled_end(int k) const { return turn_offsets[k] + turn(k).sampled_end; }

  /// The token that carries the total reward: the last sampled token, or the last token if none was sampled; -1 without
  /// tokens.
  int reward_token() const { return reward_token(num_turns()); }
  /// The same for the first `turns_before` turns.
  int reward_token(int turns_before) const;

  double penalised_score() const { return carnot::penalised_score(*tree, leaf_index); }

  /// All tokens in reading order. For Fresh turns: each turn's own prompt and response, one after the other.
  std::vector<TokenId> tokens() const;
  /// Span kind of every token.
  std::vector<SpanKind> kinds() const;
  /// True if the policy sampled the token.
  std::vector<bool> sampled() const;
  /// The column over the whole trajectory; NaN if nothing was measured. REQUIRES: the tree has the column.
  std::vector<double> column(Column column) const;
};

Trajectory trajectory(const Group& group, int group_index, int tree_index, int leaf_index);

/// Every trajectory of the groups: group by group, tree by tree, leaf by leaf. This is the order of a CreditTable.
std::vector<Trajectory> trajectories(std::span<const Group> groups);

}  // namespace carnot
