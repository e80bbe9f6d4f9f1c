// objective/importance.h -- the engine's and the trainer's log-probabilities of the same tokens: weights and mismatch.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "carnot/objective/loss.h"

namespace carnot {

/// min(exp(old - rollout), cap): truncated importance weights (Espeholt et al. 2018). No gradient.
at::Tensor importance_weights(const at::Tensor& logprob_old_T, const at::Tensor& logprob_rollout_T, double cap);

/// rollout_corr/*: how far the two are apart, as sums over tokens.
std::vector<MetricSum> mismatch_metrics(const at::Tensor& logprob_old_T, const at::Tensor& logprob_rollout_T);

}  // namespace carnot
