#include "carnot/core/rollout/group_budget.h"

#include <algorithm>

#include "carnot/core/branch/tree_expand.h"

namespace carnot {
namespace {

EntropyProbe probe_of(const Member& member) {
  const std::vector<double>& entropies = member.turn_entropies;
  EntropyProbe probe{.root = entropies.front()};
  probe.tool_calls.assign(entropies.begin() + 1, entropies.end());
  return probe;
}

std::vector<int> leaves_of(GroupBudget::Members members, int tree) {
  std::vector<int> leaves;
  for (const auto& member : members)
    if (member->tree == tree) leaves.push_back(member->sibling);
  return leaves;
}

// Null means the root.
std::vector<const Boundary*> nodes_of(GroupBudget::Members members, int tree) {
  std::vector<const Boundary*> nodes{nullptr};
  for (const auto& member : members) {
    if (member->tree != tree) continue;
    for (const Boundary& boundary : member->boundaries) nodes.push_back(&boundary);
  }
  return nodes;
}

}  // namespace

GroupBudget::GroupBudget(const BranchPolicy& policy, int trajectories, const GroupDraws& draws)
    : policy_(policy), trajectories_(trajectories), draws_(draws), expansion_(policy.expansion(trajectories)) {}

std::vector<Start> GroupBudget::initial() {
  probing_ = policy_.wants_probe();
  const int initial = probing_ ? 1 : std::clamp(policy_.initial(trajectories_), 1, trajectories_);
  std::vector<Start> starts;
  for (int i = 0; i < initial; ++i) starts.push_back(prompt_of_new_tree());
  return starts;
}

std::vector<Start> GroupBudget::next(Members members) {
  if (probing_) {
    probing_ = false;
    const int initial = std::clamp(policy_.initial(trajectories_, probe_of(*members[0])), 1, trajectories_);
    std::vector<Start> starts;
    for (int i = 1; i < initial; ++i) starts.push_back(prompt_of_new_tree());
    if (!starts.empty()) return starts;
  }
  if (expansion_ && round_ < expansion_->rounds) return grow_trees(members);
  if (expansion_) {
    keep_some_leaves(members);
    return {};
  }
  if (static_cast<int>(members.size()) >= trajectories_) return {};
  return {prompt_of_new_tree()};
}

bool GroupBudget::may_branch(int size) const {
  return policy_.ever_branches() && !probing_ && !expansion_ && size < trajectories_;
}

bool GroupBudget::branches(Member& member, int attempt, int size) {
  int& streak = policy_.streak() == BranchStreak::Task ? streak_ : member.streak;
  const bool yes =
      policy_.branch_here({.turn_entropy = member.turn_entropies.back(),
                           .initial_entropy = member.turn_entropies.front(),
                           .trajectories = size,
                           .budget = trajectories_,
                           .consecutive = streak,
                           .uniform = uniform(draws_.key("branch", member.sibling, member.num_turns(), attempt))});
  streak = yes ? streak + 1 : 0;
  return yes;
}

std::vector<Start> GroupBudget::grow_trees(Members members) {
  std::vector<Start> starts;
  for (int tree = 0; tree < num_trees_; ++tree) {
    const std::vector<const Boundary*> nodes = nodes_of(members, tree);
    const int first_member = leaves_of(members, tree).front();
    for (int j = 0; j < expansion_->nodes; ++j) {
      const double u = uniform(draws_.key("expansion", tree, round_, j));
      const Boundary* node = nodes[u * static_cast<double>(nodes.size())];
      starts.push_back({.tree = tree, .parent = node ? node->parent : first_member, .node = node});
    }
  }
  ++round_;
  return starts;
}

void GroupBudget::keep_some_leaves(Members members) {
  dropped_.assign(members.size(), false);
  for (int tree = 0; tree < num_trees_; ++tree) {
    const std::vector<int> leaves = leaves_of(members, tree);
    const int keep = std::min(expansion_->leaves[tree], static_cast<int>(leaves.size()));
    RandomStream random(random_bits(draws_.key("pruning", tree, 0, 0)));
    for (int leaf : leaves) dropped_[leaf] = true;
    for (int kept : pick_leaves(static_cast<int>(leaves.size()), keep, random)) dropped_[leaves[kept]] = false;
  }
}

DrawKey GroupDraws::key(std::string_view purpose, int sibling, int turn, int position) const {
  return {.seed = purpose.empty() ? key_.seed : derive_seed(key_.seed, purpose),
          .step = static_cast<std::uint64_t>(key_.step),
          .group = key_.first_group + static_cast<std::uint64_t>(group_),
          .sibling = static_cast<std::uint64_t>(sibling),
          .turn = static_cast<std::uint64_t>(turn),
          .position = static_cast<std::uint64_t>(position)};
}

}  // namespace carnot
