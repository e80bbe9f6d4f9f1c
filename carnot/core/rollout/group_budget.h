// rollout/group_budget.h -- how a group spends its budget of trajectories: initial ones, branches, trees grown from
// nodes, and the rest from the prompt. It decides where trajectories start; GroupRollout starts them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/rollout/member.h"
#include "carnot/core/rollout/rollout.h"

namespace carnot {

/// The keys of a group's random draws: the same whatever the order of events.
class GroupDraws {
 public:
  /// `group`: its number among the tasks of the rollout.
  GroupDraws(const RolloutKey& key, int group) : key_(key), group_(group) {}

  /// `purpose`: empty for tokens; every other purpose draws from its own stream.
  DrawKey key(std::string_view purpose, int sibling, int turn, int position) const;

 private:
  RolloutKey key_;
  int group_;
};

/// Where a trajectory starts.
struct Start {
  int tree = 0;
  int parent = -1;                 ///< member; -1: its own tree
  const Boundary* node = nullptr;  ///< of a member; null: the prompt
};

class GroupBudget {
 public:
  using Members = std::span<const std::unique_ptr<Member>>;

  /// `policy` must outlive it.
  GroupBudget(const BranchPolicy& policy, int trajectories, const GroupDraws& draws);

  int trajectories() const { return trajectories_; }
  int num_trees() const { return num_trees_; }

  /// Whether trees are grown from nodes; every member then needs its boundaries.
  bool grows_trees() const { return expansion_.has_value(); }

  /// The group's first trajectories.
  std::vector<Start> initial();

  /// What to start when no trajectory is active. Empty: the budget is spent.
  std::vector<Start> next(Members members);

  /// Whether the policy decides about branches in a group of `size` trajectories.
  bool may_branch(int size) const;

  /// Whether `member` branches where it is now, in a group of `size` trajectories. Counts branches in a row.
  bool branches(Member& member, int attempt, int size);

  /// By member: which leaves the grown trees leave out. Empty: none.
  const std::vector<bool>& dropped() const { return dropped_; }

 private:
  Start prompt_of_new_tree() { return {.tree = num_trees_++}; }
  std::vector<Start> grow_trees(Members members);
  void keep_some_leaves(Members members);

  const BranchPolicy& policy_;
  int trajectories_;
  GroupDraws draws_;
  std::optional<TreeExpansion> expansion_;
  bool probing_ = false;  ///< one trajectory measures the entropy that the number of initial ones depends on
  int num_trees_ = 0;
  int round_ = 0;   ///< of expansion
  int streak_ = 0;  ///< branches in a row, over the task
  std::vector<bool> dropped_{};
};

}  // namespace carnot
