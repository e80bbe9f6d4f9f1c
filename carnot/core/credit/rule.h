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
  /// The columns that `apply` needs on the sampled tokens of every included trajectory.
  std::vector<Column> columns{};
  bool info_gain = false;  ///< reads Turn::info_gain, on the turns that have it
  RuleKind kind = RuleKind::Base;
  bool needs_siblings = false;     ///< gives nothing to a trajectory that is alone in its group
  bool sets_value_target = false;  ///< on every sampled token of every included trajectory
};

/// Runs the chain on fresh credit.
CreditTable run_credit(std::span<const CreditRule> chain, std::span<const Trajectory> trajectories);

}  // namespace carnot
