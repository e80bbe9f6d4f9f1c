// reference/tinker_losses.h -- the losses of Tinker's forward_backward, one token at a time, with their derivatives.
#pragma once

#include <string>

namespace carnot::reference {

/// What a loss reads of a token.
struct TinkerToken {
  double log_prob = 0;  ///< under the trained weights
  double sampled = 0;   ///< when it was sampled
  double advantage = 0;
  double weight = 1;
  double low = 0.8, high = 1.2;  ///< bounds of the ratio
  double beta = 0;
};

struct TinkerTokenLoss {
  double loss = 0;
  double slope = 0;  ///< d loss / d log_prob
};

/// `name`: cross_entropy, importance_sampling, ppo, cispo or dro.
TinkerTokenLoss tinker_loss(const std::string& name, const TinkerToken& token);

}  // namespace carnot::reference
