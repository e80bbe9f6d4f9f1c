// reference/turn_credit.h -- the turn-level credit rules by their definitions, one turn at a time.
//
// `all` are the trajectories of a step; `i` is one that counts, `k` a turn of its path with sampled tokens.
#pragma once

#include <span>
#include <vector>

#include "carnot/core/data/trajectory.h"

namespace carnot::reference {

using Steps = std::span<const Trajectory>;

/// GiGPO's step advantage, weight 1: (return - mean) / (std n-1 + 1e-6) among turns with the same anchor in the group.
double step_advantage(Steps all, std::size_t i, int k, double discount);

/// A2TGPO's normalised gain of a turn: among the gains of the same turn index in the group; 0 without a gain.
double turn_gain_z(Steps all, std::size_t i, int k);

/// sum over k' >= k of discount^(k' - k) z_k', over the root of the number of terms; 0 without terms.
double accumulated_gain(Steps all, std::size_t i, int k, double discount);

/// IGPO: sum over k' >= k of discounted gains and, at the last turn, the outcome, each normalised in the group, jointly
/// or separately.
double joint_gain(Steps all, std::size_t i, int k, double discount, bool separate);

/// Tree-GRPO: z among the group's rewards + z among the tree's.
double tree_advantage(Steps all, std::size_t i);

/// AEM's factor: among the distinct turns of the group.
double entropy_factor(Steps all, std::size_t i, int k, double strength);

/// ActFocus: weight of sampled token t.
double span_weight(Steps all, std::size_t i, std::size_t t, double think, double action);

/// Mean of `value` over the counting trajectories of the same tree that pass through turn k of i's path.
double shared_mean(Steps all, std::size_t i, int k, const std::vector<double>& value);

/// RAGEN's two levels, for tokens and rewards of sampled tokens only; ends[t]: token t ends its turn.
double bilevel_advantage(const std::vector<double>& reward, const std::vector<double>& value,
                         const std::vector<bool>& ends, std::size_t t, double gamma, double lambda, double turn_gamma);

}  // namespace carnot::reference
