// loss/loss.h -- per-token statistics to one loss: ratio, clip, reduction, KL, entropy, value.
//
// Shapes: T = tokens of a micro-batch that the policy sampled (others never get here). Sums are divided by the
// denominators of the WHOLE optimizer step, so that k micro-batches accumulate to exactly the gradient of one.
// Arithmetic is float64 on the CPU whatever the inputs are: one number per token is little next to the model, and
// sums keep their order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/core/objective/options.h"

namespace carnot {

/// One micro-batch, token by token. Fixed numbers (no gradient) unless said; undefined tensors are absent signals.
struct LossInputs {
  at::Tensor logprob_T;  ///< current policy, gradient
  at::Tensor entropy_T;  ///< current policy, gradient; needed by the entropy bonus and for metrics; may be undefined
  at::Tensor clamped_entropy_T;  ///< of the likeliest part of the vocabulary (AEnt), gradient: the bonus takes it
                                 ///< instead of entropy_T where it is defined
  at::Tensor value_T;            ///< critic, gradient; may be undefined
  at::Tensor logprob_old_T;
  at::Tensor logprob_rollout_T;    ///< needed by importance_cap; may be undefined
  at::Tensor logprob_reference_T;  ///< needed by the KL loss; may be undefined
  at::Tensor value_old_T;
  at::Tensor advantage_T;
  at::Tensor weight_T;
  at::Tensor clip_scale_T;
  at::Tensor value_target_T;
  at::Tensor turn_T;      ///< int64: turn of each token, numbered within the micro-batch
  at::Tensor sequence_T;  ///< int64: sequence of each token (SequenceUnit), numbered within the micro-batch
  std::int64_t num_turns = 0;
  std::int64_t num_sequences = 0;
};

/// Of the whole optimizer step (one minibatch). Trajectories that do not count are in none of them.
struct Denominators {
  double tokens = 0;                      ///< sampled tokens
  double weight = 0;                      ///< sum of their weights: the policy loss's denominator under TokenMean
  double sequences = 0;                   ///< those (SequenceUnit) with at least one sampled token
  std::vector<double> sequence_weight{};  ///< per sequence of the micro-batch: the sum of its weights in the step
  std::vector<double> sequence_tokens{};  ///< per sequence of the micro-batch: its sampled tokens in the step
  double constant = 0;                    ///< of TokenSumOverConstant
};

/// A metric as a sum that adds up over micro-batches: value = sum of sums / sum of counts. A reduced loss has as its
/// count the micro-batch's share of the step's tokens, so that the counts of one step add up to 1.
struct MetricSum {
  std::string name{};  ///< docs/metrics.md
  double sum = 0;
  double count = 0;
};

struct Loss {
  at::Tensor total;  ///< scalar, ready for backward(); float64 on the CPU
  std::vector<MetricSum> metrics{};
};

/// The loss of one micro-batch. Takes advantages as they are, save that options.entropy_scale over CurrentMicroBatch is
/// applied here. Without tokens: 0, no graph (do not call backward()), no metrics.
/// REQUIRES: the signals that `options` use are defined.
Loss policy_loss(const ObjectiveOptions& options, const LossInputs& inputs, const Denominators& step);

}  // namespace carnot
