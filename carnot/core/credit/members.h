// credit/members.h -- which trajectories take part in the statistics, and which of their tokens receive credit.
#pragma once

#include <span>
#include <vector>

#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/trajectory.h"

namespace carnot {

/// Indices of the included trajectories, group by group. Groups without any are left out.
std::vector<std::vector<int>> members_by_group(std::span<const Trajectory> trajectories);

/// The same per training step.
std::vector<std::vector<int>> members_by_step(std::span<const Trajectory> trajectories);

/// The same per tree.
std::vector<std::vector<int>> members_by_tree(std::span<const Trajectory> trajectories);

/// The first token after the first prompt.
int response_begin(const Trajectory& trajectory);

/// Which tokens are the response: everything after the first prompt, observations included; only the sampled tokens if
/// turns render their own prompts.
std::vector<bool> in_response(const Trajectory& trajectory);

/// total_reward() of each member.
std::vector<double> rewards_of(const CreditTable& table, std::span<const int> members);

/// The values of one credit column for the sampled tokens of turn k.
std::span<double> sampled_part(std::vector<double>& column, const Trajectory& trajectory, int k);

/// Adds `value` to `column` on every sampled token of turn k, or of the whole trajectory.
void add_to_turn(std::vector<double>& column, const Trajectory& trajectory, int k, double value);
void add_to_all_turns(std::vector<double>& column, const Trajectory& trajectory, double value);

}  // namespace carnot
