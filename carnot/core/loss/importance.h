// loss/importance.h -- the engine's and the trainer's log-probabilities of the same tokens, as weights.
#pragma once

#include <ATen/core/Tensor.h>

namespace carnot {

/// min(exp(old - rollout), cap): truncated importance weights (Espeholt et al. 2018). No gradient.
at::Tensor importance_weights(const at::Tensor& logprob_old_T, const at::Tensor& logprob_rollout_T, double cap);

}  // namespace carnot
