// Members to trees: a turn stands once, in the order of the trajectories that made them.
#include "carnot/base/check.h"
#include "carnot/rollout/group_rollout.h"

namespace carnot {

Group GroupRollout::take_group() {
  CARNOT_CHECK(finished_, "the group is still being rolled out");
  Group group{.uid = task_.uid,
              .task_index = task_.task_index,
              .seed = context_.key.seed,
              .step = context_.key.step,
              .ground_truth = first_ ? first_->opened().ground_truth : std::vector<std::string>{},
              .info = first_ ? first_->opened().info : std::map<std::string, std::string>{}};
  if (unstarted_) {
    for (int sibling = 0; sibling < budget_; ++sibling) group.trees.push_back(unstarted_tree(sibling));
    return group;
  }
  group.trees.resize(num_trees_);
  std::vector<int> first_turn(members_.size());
  std::vector<int> leaf_index(members_.size());
  for (const auto& member : members_) {
    Tree& tree = group.trees[member->tree];
    add_turns(tree, first_turn, *member);
    Leaf leaf = leaf_of(first_turn, *member);
    if (member->parent >= 0) leaf.parent = leaf_index[member->parent];
    leaf_index[member->sibling] = static_cast<int>(tree.leaves.size());
    tree.leaves.push_back(std::move(leaf));
    finish_leaf(tree, leaf_index[member->sibling], member->outcome, member->last_reply);
  }
  return group;
}

// Where turn number `turn` of the member's path stands in its tree.
int GroupRollout::turn_index(const std::vector<int>& first_turn, int member, int turn) const {
  while (turn < at(member).shared_turns) member = at(member).parent;
  return first_turn[member] + turn - at(member).shared_turns;
}

void GroupRollout::add_turns(Tree& tree, std::vector<int>& first_turn, const Member& member) const {
  first_turn[member.sibling] = static_cast<int>(tree.turns.size());
  for (std::size_t i = 0; i < member.turns.size(); ++i) {
    const MadeTurn& made = member.turns[i];
    const int number = member.shared_turns + static_cast<int>(i);
    const int index = static_cast<int>(tree.turns.size());
    tree.turns.push_back(made.turn);
    tree.turns.back().parent = number == 0 ? -1 : turn_index(first_turn, member.sibling, number - 1);
    const int size = static_cast<int>(made.turn.tokens.size());
    std::vector<double>& log_probs = tree.columns.edit(Column::LogProbRollout, index, size);
    std::vector<double>& entropies = tree.columns.edit(Column::EntropyRollout, index, size);
    for (std::size_t j = 0; j < made.draws.size(); ++j) {
      log_probs[static_cast<std::size_t>(made.turn.sampled_begin) + j] = made.draws[j].log_prob;
      entropies[static_cast<std::size_t>(made.turn.sampled_begin) + j] = made.draws[j].entropy;
    }
  }
}

Leaf GroupRollout::leaf_of(const std::vector<int>& first_turn, const Member& member) const {
  Leaf leaf{.sibling = member.sibling, .trajectory_id = task_.uid + "." + std::to_string(member.sibling)};
  leaf.turn = turn_index(first_turn, member.sibling, member.num_turns() - 1);
  if (member.parent >= 0) leaf.branch_turn = member.shared_turns;
  if (!dropped_.empty()) leaf.dropped = dropped_[member.sibling];
  return leaf;
}

// One turn that holds the prompt, where there is one, and nothing sampled.
Tree GroupRollout::unstarted_tree(int sibling) const {
  Tree tree;
  Turn turn{.policy_version = context_.key.policy_version};
  if (first_) {
    turn.tokens = first_->opening().tokens;
    turn.spans = first_->opening().spans;
    turn.sampled_begin = turn.sampled_end = static_cast<int>(turn.tokens.size());
  }
  const int size = static_cast<int>(turn.tokens.size());
  tree.turns.push_back(std::move(turn));
  tree.columns.edit(Column::LogProbRollout, 0, size);
  tree.columns.edit(Column::EntropyRollout, 0, size);
  tree.leaves.push_back({.turn = 0,
                         .sibling = sibling,
                         .trajectory_id = task_.uid + "." + std::to_string(sibling),
                         .outcome = *unstarted_});
  return tree;
}

}  // namespace carnot
