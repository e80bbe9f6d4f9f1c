// nn/random_weights.h -- what a model's weights are where no checkpoint says it. Each is drawn on the CPU in double
// from a stream of its own, keyed by seed and name: the same on every device and dtype.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/core/nn/model.h"

namespace carnot {

/// Matrices: normal, standard deviation `init_std`, divided by sqrt(2 layers) for projections back into the residual
/// stream. Convolutions: normal, 1 / sqrt(taps). Biases: 0. Norms: such that they multiply by 1. Heads of the gated
/// delta rule forget at rates from 0 to 16 a step of time, and a token is a step of 0.001 to 0.1, log-uniform, as in
/// the published program of its authors (github.com/fla-org/flash-linear-attention); what transformers has instead, a
/// step of about 1.3, forgets every token at once.
void fill_with_random_weights(std::span<const NamedTensor> parameters, const ModelConfig& config, std::uint64_t seed,
                              double init_std);

}  // namespace carnot
