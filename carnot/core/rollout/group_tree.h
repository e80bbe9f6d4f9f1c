// rollout/group_tree.h -- finished members to trees: each turn is stored once, in the order of the trajectories that
// made them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/data/tree.h"
#include "carnot/core/rollout/member.h"

namespace carnot {

struct GroupTrees {
  std::vector<Tree> trees{};
  std::vector<std::vector<std::optional<double>>> answer_log_probs{};  ///< by tree and turn
};

/// The trees of a group, its leaves numbered as the members. `dropped`: by member; empty: no member is dropped.
GroupTrees trees_of(std::span<const std::unique_ptr<Member>> members, int num_trees, const std::vector<bool>& dropped,
                    const std::string& uid);

/// The tree of a trajectory that could not start: one turn that holds the prompt, if there is one, and nothing
/// sampled.
Tree unstarted_tree(const SpannedTokens& prompt, const Leaf& leaf, int policy_version);

}  // namespace carnot
