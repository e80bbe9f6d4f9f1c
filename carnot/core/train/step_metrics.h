// train/step_metrics.h -- what a step's trajectories and credit look like in numbers (names in docs/metrics.md).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/rollout/rollout.h"

namespace carnot {

/// Scores, lengths, turns, outcomes, success, entropy by span kind and by turn; over valid trajectories.
std::map<std::string, double> trajectory_metrics(std::span<const Trajectory> trajectories,
                                                 const std::string& environment);

/// The share of groups whose task an earlier one has: the same first prompt, ground truth and info; 0 without groups.
double duplicate_tasks(std::span<const Group> groups);

/// Advantages, weights, clip scales, and the critic's values and targets, over the sampled tokens of trajectories that
/// count.
std::map<std::string, double> credit_metrics(std::span<const Trajectory> trajectories, const CreditTable& credit);

/// What kl_in_reward subtracts, before its coefficient: log-probability under the old policy - under the reference, as
/// the mean over included trajectories of the mean over their sampled tokens. Nothing if a column is missing.
std::optional<double> kl_to_reference(std::span<const Trajectory> trajectories);

/// Tokens, seconds and shares of the rollout.
std::map<std::string, double> rollout_metrics(const RolloutMetrics& metrics);

/// rollout_corr/*: the engine's log-probabilities against those of the old policy, over the sampled tokens of included
/// trajectories; nothing if a column is missing. `importance_cap` as in ObjectiveOptions: 0 leaves the weights
/// uncapped, in the effective sample size alone.
std::map<std::string, double> mismatch_metrics(std::span<const Trajectory> trajectories, double importance_cap);

}  // namespace carnot
