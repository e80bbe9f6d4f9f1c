// studies/gradient_sketch.h -- policy gradients of single trajectories, each in a few numbers that keep inner products.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/nn/token_statistics.h"

namespace carnot {

inline constexpr std::size_t kSketchNumbers = 1024;

/// A vector of all trained weights' elements, each added with a sign to one of kSketchNumbers numbers, sign and number
/// drawn by (seed, place of the weight, element): a count sketch (Charikar et al. 2002). The mean of <s(x), s(y)> over
/// seeds is <x, y>, with a variance of at most 2 |x|^2 |y|^2 / kSketchNumbers.
using Sketch = std::vector<double>;

/// Of the gradients that the model's trained weights hold; those without one count as zeros.
Sketch sketch_of_gradients(const Model& model, std::uint64_t seed);

/// Of the gradient of sum over the trajectory's sampled tokens of advantage x weight x log-probability, at the options'
/// temperature. Clears the gradients. REQUIRES: model.requires_grad(true).
Sketch sketch_of_trajectory(const Model& model, const Trajectory& trajectory, const Credit& credit,
                            const StatisticsOptions& options, std::uint64_t seed);

}  // namespace carnot
