// nn/token_statistics.h -- hidden states to log-probability, entropy and logsumexp, without storing logits.
//
// The [T, V] matrix never exists: logits live in a strip of a few rows. Backward computes them again. Everything is
// of logits / temperature. Memory: O(T) plus one strip.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/nn/model.h"

namespace carnot {

struct TokenStatistics {
  at::Tensor logprob_T;    ///< of the target, nats
  at::Tensor entropy_T;    ///< of the whole softmax, nats
  at::Tensor logsumexp_T;  ///< of logits / temperature
};

/// hidden_TH [T, H] and head_VH [V, H] may require gradients; targets_T int64 on the CPU, in [0, V).
TokenStatistics token_statistics(const at::Tensor& hidden_TH, const at::Tensor& head_VH, const at::Tensor& targets_T,
                                 double temperature, KernelChoice kernels = KernelChoice::Own);

}  // namespace carnot
