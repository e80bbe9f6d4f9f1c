// credit/rule.h -- a credit rule decides how much credit each token of each trajectory gets.
//
// Rules are plain functions over trajectories: no tensors, no device, arithmetic in double. They run in a chain
// over one CreditTable: base rules add to `advantage`, modulators scale it, others multiply `weight` or
// `clip_scale`. Trajectories that are not included (filtered, or InfraFailed) affect no statistic and get nothing.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/credit/readings.h"
#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/trajectory.h"

namespace carnot {

/// What a rule does to a CreditTable.
enum class RuleKind {
  Base,       ///< adds to `advantage`; may set `value_target` and `clip_scale`
  Shaping,    ///< changes `reward`; comes before all others
  Modulator,  ///< scales or mixes the current `advantage`; what later rules add is unaffected
  Weight,     ///< multiplies `weight` only
};

struct CreditRule {
  std::string name{};
  /// Updates `table`, which has the same order as `trajectories`.
  std::function<void(std::span<const Trajectory> trajectories, CreditTable& table)> apply{};
  /// The quantities that `apply` would derive from this table; empty if there is nothing to say.
  std::function<void(std::span<const Trajectory> trajectories, const CreditTable& table, RuleReadings& readings)>
      read{};
  /// The columns that `apply` needs on the sampled tokens of every included trajectory.
  std::vector<Column> columns{};
  bool any_token = false;  ///< of those: tokens without a value are all right, so long as some have one
  bool info_gain = false;  ///< reads Turn::info_gain, on the turns that have it
  RuleKind kind = RuleKind::Base;
  bool needs_siblings = false;     ///< gives nothing to a trajectory that is alone in its group
  bool sets_value_target = false;  ///< on every sampled token of every included trajectory
};

/// Runs the chain on fresh credit.
CreditTable run_credit(std::span<const CreditRule> chain, std::span<const Trajectory> trajectories);

// What rules use: which trajectories take part in statistics, and which of their tokens receive credit.

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
