// reference/policy_loss.h -- the objective, one token at a time in plain double arithmetic. Linked by tests only.
#pragma once

#include <vector>

#include "carnot/core/objective/options.h"

namespace carnot::reference {

/// One sampled token.
struct LossToken {
  double logprob = 0, logprob_old = 0, logprob_rollout = 0, logprob_reference = 0;
  double entropy = 0;
  double value = 0, value_old = 0, value_target = 0;
  double advantage = 0, weight = 1, clip_scale = 1;
  int turn = 0;  ///< numbered within its trajectory; tokens of one turn are neighbours
};

/// By trajectory, in reading order.
using LossSequences = std::vector<std::vector<LossToken>>;

struct SlowLoss {
  double loss = 0;
  double policy = 0, kl = 0, entropy = 0, value = 0;  ///< reduced, before their coefficients
  /// Gradients by sequence and token.
  std::vector<std::vector<double>> by_logprob{}, by_entropy{}, by_value{};
};

/// The loss of a whole step. The divisor of TokenSumOverConstant is options.reduction_constant.
SlowLoss policy_loss(const ObjectiveOptions& options, const LossSequences& sequences);

}  // namespace carnot::reference
