// train/minibatches.h -- which trajectories make up each optimizer step of a training step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/core/data/trajectory.h"

namespace carnot {

enum class MinibatchUnit { Group, Trajectory };

struct MinibatchOptions {
  int count = 1;                              ///< optimizer steps per training step; fewer if there are fewer units
  MinibatchUnit unit = MinibatchUnit::Group;  ///< what is never split
  bool shuffle = true;
  std::uint64_t seed = 0;  ///< of the shuffle: derive_seed(run's seed, "minibatches", training step and epoch)
};

/// Splits a training step's included trajectories into optimizer steps of nearly equal numbers of units.
/// No part is empty; every trajectory is in exactly one.
std::vector<std::vector<int>> split_minibatches(std::span<const Trajectory> trajectories,
                                                const MinibatchOptions& options);

}  // namespace carnot
