#include "carnot/core/rollout/member.h"

#include <algorithm>

#include "carnot/core/rollout/episode.h"

namespace carnot {
namespace {

class Trees {
 public:
  explicit Trees(std::span<const std::unique_ptr<Member>> members)
      : members_(members), first_turn_(members.size()), leaf_index_(members.size()) {}

  void add(GroupTrees& group, const Member& member, bool dropped, const std::string& uid) {
    Tree& tree = group.trees[member.tree];
    add_turns(tree, member);
    for (const MadeTurn& made : member.turns) group.answer_log_probs[member.tree].push_back(made.answer_log_prob);
    Leaf leaf{.sibling = member.sibling, .trajectory_id = uid + "." + std::to_string(member.sibling)};
    leaf.turn = turn_index(member.sibling, member.num_turns() - 1);
    leaf.dropped = dropped;
    if (member.parent >= 0) {
      leaf.branch_turn = member.shared_turns;
      leaf.parent = leaf_index_[member.parent];
    }
    leaf_index_[member.sibling] = static_cast<int>(tree.leaves.size());
    tree.leaves.push_back(std::move(leaf));
    finish_leaf(tree, leaf_index_[member.sibling], member.outcome, member.last_reply);
  }

 private:
  const Member& at(int member) const { return *members_[member]; }

  /// The index in its tree of turn number `turn` on the member's path.
  int turn_index(int member, int turn) const {
    while (turn < at(member).shared_turns) member = at(member).parent;
    return first_turn_[member] + turn - at(member).shared_turns;
  }

  void add_turns(Tree& tree, const Member& member) {
    first_turn_[member.sibling] = static_cast<int>(tree.turns.size());
    for (std::size_t i = 0; i < member.turns.size(); ++i) {
      const MadeTurn& made = member.turns[i];
      const int number = member.shared_turns + static_cast<int>(i);
      const int index = static_cast<int>(tree.turns.size());
      tree.turns.push_back(made.turn);
      tree.turns.back().parent = number == 0 ? -1 : turn_index(member.sibling, number - 1);
      const int size = static_cast<int>(made.turn.tokens.size());
      std::vector<double>& log_probs = tree.columns.edit(Column::LogProbRollout, index, size);
      std::vector<double>& entropies = tree.columns.edit(Column::EntropyRollout, index, size);
      for (std::size_t j = 0; j < made.draws.size(); ++j) {
        log_probs[static_cast<std::size_t>(made.turn.sampled_begin) + j] = made.draws[j].log_prob;
        entropies[static_cast<std::size_t>(made.turn.sampled_begin) + j] = made.draws[j].entropy;
      }
    }
  }

  std::span<const std::unique_ptr<Member>> members_;
  std::vector<int> first_turn_;  ///< by member: the index of the first turn that it sampled itself
  std::vector<int> leaf_index_;  ///< by member
};

}  // namespace

Response::Response(const Tokenizer& tokenizer, const std::vector<std::string>& stop_strings)
    : stop_strings_(&stop_strings), decoder_(tokenizer) {
  for (const std::string& stop : stop_strings) longest_ = std::max(longest_, stop.size());
}

bool Response::push(const TokenDraw& draw) {
  draws_.push_back(draw);
  tokens_.push_back(draw.token);
  if (stop_strings_->empty()) return false;
  tail_ += decoder_.push(draw.token);
  const auto stands_in_tail = [&](const std::string& stop) { return tail_.find(stop) != std::string::npos; };
  if (std::any_of(stop_strings_->begin(), stop_strings_->end(), stands_in_tail)) return true;
  if (tail_.size() >= longest_) tail_.erase(0, tail_.size() - longest_ + 1);
  return false;
}

GroupTrees trees_of(std::span<const std::unique_ptr<Member>> members, int num_trees, const std::vector<bool>& dropped,
                    const std::string& uid) {
  GroupTrees out;
  out.trees.resize(num_trees);
  out.answer_log_probs.resize(num_trees);
  Trees trees(members);
  for (const auto& member : members) trees.add(out, *member, !dropped.empty() && dropped[member->sibling], uid);
  return out;
}

Tree unstarted_tree(const SpannedTokens& prompt, const Leaf& leaf, int policy_version) {
  Turn turn{.tokens = prompt.tokens, .spans = prompt.spans, .policy_version = policy_version};
  const int size = static_cast<int>(turn.tokens.size());
  turn.sampled_begin = turn.sampled_end = size;
  Tree tree;
  tree.turns.push_back(std::move(turn));
  tree.columns.edit(Column::LogProbRollout, 0, size);
  tree.columns.edit(Column::EntropyRollout, 0, size);
  tree.leaves.push_back(leaf);
  return tree;
}

}  // namespace carnot
