// credit/rule.h -- a credit rule decides how much each token of each trajectory is responsible for.
//
// Rules are plain functions over trajectories: no tensors, no device, arithmetic in double. They run in a chain
// over one CreditTable: base rules add to `advantage`, modulators scale it, others multiply `weight` or
// `clip_scale`. Trajectories that do not count (filtered, or InfraFailed) change no statistic and get nothing.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "carnot/data/credit_table.h"
#include "carnot/data/trajectory.h"

namespace carnot {

struct CreditRule {
  std::string name{};
  /// Effect on `table`, which is numbered as `trajectories`.
  std::function<void(std::span<const Trajectory> trajectories, CreditTable& table)> apply{};
  /// What `apply` needs measured on the sampled tokens of every trajectory that counts.
  std::vector<Column> columns{};
  bool info_gain = false;  ///< reads Turn::info_gain, on the turns that have it
};

/// Runs the chain over fresh credit.
CreditTable run_credit(std::span<const CreditRule> chain, std::span<const Trajectory> trajectories);

}  // namespace carnot
