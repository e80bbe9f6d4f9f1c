// nn/random_weights.h -- what a model's weights are where no checkpoint says it. Each is drawn on the CPU in double
// from a stream of its own, keyed by seed and name: the same on every device and dtype.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/core/nn/model.h"

namespace carnot {

/// Matrices: normal, standard deviation `init_std`, divided by sqrt(2 layers) for projections back into the residual
/// stream. Convolutions: normal, 1 / sqrt(taps). Biases: 0. Norms: such that they multiply by 1. Heads of the gated
/// delta rule forget at rates from 0 to 16, as transformers has them.
void fill_with_random_weights(std::span<const NamedTensor> parameters, const ModelConfig& config, std::uint64_t seed,
                              double init_std);

}  // namespace carnot
