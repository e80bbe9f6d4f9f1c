// train/mismatch_metrics.h -- rollout_corr/*: the engine's log-probabilities against those of the old policy.
#pragma once

#include <map>
#include <span>
#include <string>

#include "carnot/core/data/trajectory.h"

namespace carnot {

/// Over the sampled tokens of included trajectories; nothing if a column is missing. `importance_cap` as in
/// ObjectiveOptions: 0 leaves the weights uncapped, in the effective sample size alone (names in docs/metrics.md).
std::map<std::string, double> mismatch_metrics(std::span<const Trajectory> trajectories, double importance_cap);

}  // namespace carnot
