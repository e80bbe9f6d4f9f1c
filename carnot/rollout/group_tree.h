// rollout/group_tree.h -- finished members to trees: each turn is stored once, in the order of the trajectories that
// made them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/data/tree.h"
#include "carnot/rollout/member.h"

namespace carnot {

/// The trees of a group, its leaves numbered as the members. `dropped`: by member; empty: no member is dropped.
std::vector<Tree> trees_of(std::span<const std::unique_ptr<Member>> members, int num_trees,
                           const std::vector<bool>& dropped, const std::string& uid);

/// The tree of a trajectory that could not start: one turn that holds the prompt, if there is one, and nothing
/// sampled.
Tree unstarted_tree(const SpannedTokens& prompt, const Leaf& leaf, int policy_version);

}  // namespace carnot
