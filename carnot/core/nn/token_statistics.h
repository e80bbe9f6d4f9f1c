// nn/token_statistics.h -- hidden states to log-probability, entropy and logsumexp, without storing logits.
//
// The [T, V] matrix never exists: logits exist for a strip of a few rows at a time. Backward computes them again. All
// results are for logits / temperature. Memory: O(T) plus one strip.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/model.h"

namespace carnot {

struct StatisticsOptions {
  double temperature = 1;    ///< above 0
  double entropy_clamp = 0;  ///< in [0, 1): above 0 asks for the clamped entropy
  KernelChoice kernels = KernelChoice::Own;
  PackedWeights* packed = nullptr;  ///< keeps the packed head between calls; null: it is packed for the call
};

struct TokenStatistics {
  at::Tensor logprob_T;    ///< of the target, nats
  at::Tensor entropy_T;    ///< of the whole softmax, nats
  at::Tensor logsumexp_T;  ///< of logits / temperature
  /// AEnt (arXiv:2509.03493): entropy in nats of the softmax over the entries that remain when the least likely are
  /// removed. The gradient treats the choice of entries as constant. Of equally likely ones, larger token ids are
  /// removed first. Undefined if not requested.
  at::Tensor clamped_entropy_T{};
};

/// floor(share x vocabulary), but never all of it: the number of entries that the clamped entropy leaves out.
std::int64_t clamped_entries(double share, std::int64_t vocabulary);

/// hidden_TH [T, H] and head_VH [V, H] may require gradients; targets_T int64 on the CPU, in [0, V).
TokenStatistics token_statistics(const at::Tensor& hidden_TH, const at::Tensor& head_VH, const at::Tensor& targets_T,
                                 const StatisticsOptions& options);

/// The same with a model's head and kernels. The head stays packed until its weights change.
TokenStatistics token_statistics(const at::Tensor& hidden_TH, const Model& model, const at::Tensor& targets_T,
                                 StatisticsOptions options = {});

}  // namespace carnot
