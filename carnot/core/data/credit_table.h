// data/credit_table.h -- the credit chain's result: four columns per trajectory, the only input of the objective, and
// the rewards that the chain starts from.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "carnot/core/data/trajectory.h"

namespace carnot {

/// Per token of one trajectory, in reading order. Values of tokens that were not sampled are not read.
struct Credit {
  std::vector<double> advantage;     ///< starts at 0; base rules add, modulators scale
  std::vector<double> weight;        ///< starts at 1; factor of the token's loss AND of its share of the denominator
  std::vector<double> clip_scale;    ///< starts at 1; width of the clip range
  std::vector<double> value_target;  ///< starts at NaN (none); GAE only

  /// What base rules read: starts at Column::Reward (0 without that column) plus the penalised score on the last
  /// sampled token (the last token if none was sampled). Reward rules change it. 0 if the leaf is not included.
  std::vector<double> reward{};

  /// Sum of `reward`: the trajectory's total.
  double total_reward() const;
};

/// One Credit per trajectory, in the order of trajectories(groups).
using CreditTable = std::vector<Credit>;

/// A table of initial values.
CreditTable fresh_credit(std::span<const Trajectory> trajectories);

}  // namespace carnot
